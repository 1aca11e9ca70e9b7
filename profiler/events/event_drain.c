// SPDX-License-Identifier: MIT
#include "profiler/events/event_drain.h"

#include <bpf/bpf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/log_file.h"

enum {
    // A ring that is half full is drained in steps of this many records, about half a millisecond's
    // work: the reader's core is often the load generator's, too.
    DRAIN_RECORDS = 16384,
    WRITE_RECORDS = 4096, // 128 KiB: as many are written in one go
};

int event_drain_begin(struct event_drain *drain, unsigned cores, uint64_t memory_bytes,
                      struct error *err)
{
    *drain = (struct event_drain){
        .core_count = cores, .memory_bytes = memory_bytes, .records = MAP_FAILED};
    drain->cores = calloc(cores, sizeof *drain->cores);
    return drain->cores ? 0 : error_set(err, ERROR_FAILED, "no memory for a capture");
}

int event_drain_map(struct event_drain *drain, struct core_ring *rings, int map, size_t bytes,
                    struct error *err)
{
    drain->rings = rings;
    drain->records_bytes = bytes;
    // The kernel maps every page of such an array at once, so reading never faults.
    drain->records = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    return drain->records != MAP_FAILED
               ? 0
               : error_set_errno(err, ERROR_FAILED, "cannot map the event rings (%zu MiB)",
                                 bytes >> 20);
}

void event_drain_free(struct event_drain *drain)
{
    if (drain->cores && drain->records != MAP_FAILED)
        munmap(drain->records, drain->records_bytes);
    for (unsigned core = 0; drain->cores && core < drain->core_count; core++)
        array_free(&drain->cores[core]);
    free(drain->cores);
    drain->cores = NULL;
}

bool event_drain_core(struct event_drain *drain, unsigned core, uint64_t most, bool last)
{
    struct core_ring *ring = &drain->rings[core];
    struct event_array *out = &drain->cores[core];
    uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
    uint64_t tail = ring->tail;
    if (head - tail > most)
        head = tail + most;
    uint64_t waiting = head - tail;
    if ((drain->held + waiting) * sizeof(struct event) > drain->memory_bytes ||
        array_reserve(out, out->count + waiting) < 0) {
        drain->memory_full = true;
        return false;
    }
    size_t before = out->count;
    for (; tail != head; tail++) {
        struct event *slot = &drain->records[ring->base + ((uint32_t)tail & ring->mask)];
        if (__atomic_load_n(&slot->kind, __ATOMIC_ACQUIRE) != 0) {
            out->items[out->count++] = *slot;
            drain->received += slot->kind == EVENT_RECEIVED;
            slot->kind = 0;
        } else if (last) {
            drain->unfinished++;
        } else {
            break;
        }
    }
    drain->held += out->count - before;
    drain->all += out->count - before;
    __atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
    return true;
}

void event_drain_poll(struct event_drain *drain)
{
    for (unsigned core = 0; core < drain->core_count; core++) {
        const struct core_ring *ring = &drain->rings[core];
        uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
        uint64_t waiting = head - ring->tail;
        // In short steps, so that other work on the reader's core is not held up for long; until
        // the ring is empty where the steps do not keep up.
        uint64_t most = waiting > ring->mask / 4 * 3 ? waiting : DRAIN_RECORDS;
        if (waiting > ring->mask / 2)
            event_drain_core(drain, core, most, false);
    }
}

uint64_t event_drain_dropped(const struct event_drain *drain)
{
    uint64_t dropped = 0;
    for (unsigned core = 0; core < drain->core_count; core++)
        dropped += __atomic_load_n(&drain->rings[core].dropped, __ATOMIC_RELAXED);
    return dropped;
}

uint64_t event_drain_kept(const struct event_drain *drain)
{
    uint64_t records = drain->held;
    for (unsigned core = 0; core < drain->core_count; core++)
        records +=
            __atomic_load_n(&drain->rings[core].head, __ATOMIC_RELAXED) - drain->rings[core].tail;
    return records * sizeof(struct event);
}

void event_drain_add(struct event_drain *drain, const struct event *event)
{
    if (array_push(&drain->cores[event->core], *event) < 0) {
        drain->memory_full = true;
        return;
    }
    drain->held++;
    drain->all++;
}

// Stamps of the NIC's clock become times of the host's.
static void convert_stamps(const struct nic_arrivals *nic, struct event_array *events)
{
    for (size_t i = 0; nic->clock >= 0 && i < events->count; i++)
        if (events->items[i].kind == EVENT_STAMPED)
            events->items[i].payload.b = nic_arrivals_convert(nic, events->items[i].payload.b);
}

// A record is a little out of order only where one program interrupted another, so moving each to
// its place is nearly free. Equal times keep their order.
static void sort_events(struct event_array *events)
{
    for (size_t i = 1; i < events->count; i++) {
        if (events->items[i].time >= events->items[i - 1].time)
            continue;
        struct event moved = events->items[i];
        size_t to = i;
        for (; to > 0 && events->items[to - 1].time > moved.time; to--)
            events->items[to] = events->items[to - 1];
        events->items[to] = moved;
    }
}

static int compare_times(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    return order_of(a->time, b->time) ?: order_of(a->payload.a, b->payload.a);
}

// Puts where messages end among the events of that core, which are in order of time.
static int add_frames(struct event_drain *drain, struct payload_frames *of, unsigned core)
{
    if (!of)
        return 0;
    struct frame_array *frames = payload_frames_of(of, core);
    struct event_array *events = &drain->cores[core];
    if (array_reserve(events, events->count + frames->count) < 0)
        return -1;
    array_sort(frames, compare_times);
    size_t event = events->count, to = events->count + frames->count;
    for (size_t frame = frames->count; frame > 0;) {
        bool later = event > 0 && events->items[event - 1].time > frames->items[frame - 1].time;
        events->items[--to] = later ? events->items[--event] : frames->items[--frame];
    }
    events->count += frames->count;
    drain->all += frames->count;
    frames->count = 0;
    return 0;
}

// The core may be the load generator's, too, which has waited for its turn by then: the kernel
// gives whoever runs some milliseconds before it looks for others.
static int append_in_steps(struct log_writer *writer, const struct event_array *events,
                           struct error *err)
{
    int result = 0;
    for (size_t at = 0; at < events->count && result == 0; at += WRITE_RECORDS) {
        const size_t left = events->count - at;
        result = log_writer_append(writer, events->items + at,
                                   left < WRITE_RECORDS ? left : WRITE_RECORDS, err);
        sched_yield();
    }
    return result;
}

int event_drain_write(struct event_drain *drain, struct nic_arrivals *nic,
                      struct payload_frames *frames, const char *out_dir, const char *name,
                      uint64_t dropped, struct error *err)
{
    char path[4096];
    struct log_writer writer;
    snprintf(path, sizeof path, "%s/%s", out_dir, name);
    int result =
        log_writer_open(&writer, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), err);
    if (result < 0)
        return result;
    nic_arrivals_take(nic);
    for (unsigned core = 0; core < drain->core_count; core++) {
        convert_stamps(nic, &drain->cores[core]);
        sort_events(&drain->cores[core]);
        if (add_frames(drain, frames, core) < 0)
            result = error_set(err, ERROR_FAILED, "no memory for where messages end");
        else
            result = append_in_steps(&writer, &drain->cores[core], err);
        if (result < 0) {
            log_writer_discard(&writer);
            return result;
        }
    }
    nic_arrivals_forget(nic);
    return log_writer_close(&writer, dropped, err);
}

// Counts switches from threads that were not seen being switched in: how often events were missing.
static uint64_t count_unseen(const struct event_drain *drain)
{
    uint64_t unseen = 0;
    for (unsigned core = 0; core < drain->core_count; core++)
        for (size_t i = 0; i < drain->cores[core].count; i++) {
            const struct event *event = &drain->cores[core].items[i];
            unseen += event->kind == EVENT_SWITCH && (event->flags & SWITCH_UNSEEN);
        }
    return unseen;
}

void event_drain_forget(struct event_drain *drain, struct payload_frames *frames)
{
    drain->unseen += count_unseen(drain);
    for (unsigned core = 0; core < drain->core_count; core++) {
        event_kinds_count(drain->cores[core].items, drain->cores[core].count, drain->kinds);
        drain->cores[core].count = 0;
        if (frames)
            payload_frames_of(frames, core)->count = 0;
    }
    drain->held = drain->received = 0;
}

void event_drain_skip(struct event_drain *drain)
{
    for (unsigned core = 0; core < drain->core_count; core++) {
        struct core_ring *ring = &drain->rings[core];
        const uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
        for (uint64_t tail = ring->tail; tail != head; tail++)
            drain->records[ring->base + ((uint32_t)tail & ring->mask)].kind = 0;
        __atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
    }
}
