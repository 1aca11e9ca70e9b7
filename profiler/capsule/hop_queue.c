// SPDX-License-Identifier: MIT
#include "profiler/capsule/hop_queue.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profiler/bpf/packet_head.h"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "profiler/bpf/queue.skel.h"
#pragma GCC diagnostic pop

enum { WAITING_PACKETS = 65536 }; // at a time, in all queues together

static void tell(struct hop_queue *queue, const char *what)
{
    snprintf(queue->problem, sizeof queue->problem, "%s net_dev_start_xmit: %s", what,
             strerror(errno));
}

void hop_queue_open(struct hop_queue *queue, const struct hop_rings *rings, size_t most)
{
    *queue = (struct hop_queue){.programs = queue_bpf__open(), .most = most};
    if (!queue->programs ||
        hop_rings_share(rings, queue->programs->maps.slots, queue->programs->maps.rings) < 0 ||
        bpf_map__set_max_entries(queue->programs->maps.waiting, WAITING_PACKETS) < 0 ||
        queue_bpf__load(queue->programs) < 0) {
        tell(queue, "no program can be loaded for");
        queue_bpf__destroy(queue->programs);
        queue->programs = NULL;
    }
}

void hop_queue_tell(struct hop_queue *queue, uint8_t hop, const struct hop_device *device)
{
    if (queue->programs && hop < HOPS_MAX)
        *(volatile struct hop_device *)&queue->programs->bss->devices[hop] = *device;
}

bool hop_queue_begin(struct hop_queue *queue)
{
    if (!queue->programs || queue->attached || queue->problem[0])
        return queue->attached;
    queue->attached = queue_bpf__attach(queue->programs) == 0;
    if (!queue->attached)
        tell(queue, "no program can be attached to");
    return queue->attached;
}

int hop_queue_waiting(const struct hop_queue *queue)
{
    return queue->programs ? bpf_map__fd(queue->programs->maps.waiting) : -1;
}

void hop_queue_take(struct hop_queue *queue, const struct queue_leaving *leaving)
{
    if (queue->leavings.count >= queue->most || array_push(&queue->leavings, *leaving) < 0)
        queue->lost++;
}

static int by_record(const void *a, const void *b)
{
    const struct queue_leaving *x = a, *y = b;
    return order_of(x->entered, y->entered)
               ?: order_of(x->flow, y->flow) ?: order_of(x->hop, y->hop);
}

void hop_queue_settle(struct hop_queue *queue, struct hop_record *records, size_t count)
{
    const struct queue_leaving_array *leavings = &queue->leavings;
    array_sort(&queue->leavings, by_record);
    for (size_t i = 0; i < count && leavings->count; i++) {
        struct hop_record *record = &records[i];
        const struct queue_leaving wanted = {
            .entered = record->time, .flow = record->flow, .hop = record->hop};
        size_t at = array_bound(0, leavings->count, k, by_record(&leavings->items[k], &wanted) < 0);
        if (at == leavings->count || by_record(&leavings->items[at], &wanted) != 0)
            continue;
        record->queued_ns = leavings->items[at].time - record->time;
        record->queued_ns += record->queued_ns == 0; // 0 is "not known"
        queue->left[record->hop % HOPS_MAX]++;
    }
    array_free(&queue->leavings);
}

void hop_queue_end(struct hop_queue *queue)
{
    if (queue->programs)
        queue->lost += *(volatile uint64_t *)&queue->programs->bss->dropped;
    queue_bpf__destroy(queue->programs);
    queue->programs = NULL;
}
