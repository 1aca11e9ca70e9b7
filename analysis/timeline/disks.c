// SPDX-License-Identifier: MIT
#include "analysis/timeline/disks.h"

#include <stdio.h>

#include "analysis/timeline/thread_states.h"
#include "base/array.h"
#include "profiler/bpf/event_log.h"

// A completion takes no longer from its record to waking who waits for it.
enum { WAKES_WITHIN_NS = 200000 };

// The first request that was completed at `time_ns` or later.
static size_t first_done(const struct disk_request_array *all, int64_t time_ns)
{
    return array_bound(0, all->count, i, all->items[i].done_ns < time_ns);
}

// Whether a program's own thread did that, not who completes requests: it may have waited for the
// disk itself, a moment before, and has something of its own to tell.
static bool by_program(const struct host_timeline *host, const struct waking *waking)
{
    struct waker waker = waker_of(host, waking);
    return waker.kind == WAKER_THREAD && host_timeline_owner(host, waker.thread);
}

const struct disk_request *disk_request_of_waking(const struct host_timeline *host,
                                                  const struct waking *waking)
{
    const struct disk_request_array *all = &host->disk_requests;
    for (size_t i = first_done(all, waking->time_ns + 1); i > 0; i--) {
        const struct disk_request *request = &all->items[i - 1];
        if (request->done_ns < waking->time_ns - WAKES_WITHIN_NS)
            break;
        if (request->core == waking->from)
            return by_program(host, waking) ? NULL : request;
    }
    return NULL;
}

struct stages {
    int64_t at_ns, end_ns;
    disk_stage_visitor *each;
    void *context;
};

static void tell_until(struct stages *stages, const struct disk_request *request,
                       enum disk_stage stage, int64_t until_ns)
{
    until_ns = until_ns < stages->end_ns ? until_ns : stages->end_ns;
    if (until_ns <= stages->at_ns)
        return;
    stages->each(request, stage, stages->at_ns, until_ns, stages->context);
    stages->at_ns = until_ns;
}

void disk_stages(const struct host_timeline *host, const struct disk_request *last,
                 int64_t begin_ns, int64_t end_ns, disk_stage_visitor *each, void *context)
{
    const struct disk_request_array *all = &host->disk_requests;
    struct stages stages = {.at_ns = begin_ns, .end_ns = end_ns, .each = each, .context = context};
    for (size_t i = first_done(all, begin_ns + 1); i < all->count && &all->items[i] <= last; i++) {
        const struct disk_request *request = &all->items[i];
        if (request->disk != last->disk)
            continue;
        tell_until(&stages, request, DISK_HELD_BACK, request->made_ns);
        tell_until(&stages, request, DISK_QUEUES, request->issued_ns);
        tell_until(&stages, request, DISK_SERVES, request->done_ns);
    }
    tell_until(&stages, last, DISK_SERVES, end_ns);
}

static const char *operation_word(uint8_t operation)
{
    switch ((enum disk_operation)operation) {
    case DISK_READS:
        return "read";
    case DISK_WRITES:
        return "write";
    case DISK_FLUSHES:
        return "flush";
    case DISK_DISCARDS:
        return "discard";
    }
    return "other request";
}

void disk_stage_name(const struct host_timeline *host, const struct disk_request *request,
                     enum disk_stage stage, char *out, size_t out_bytes)
{
    const char *what = stage == DISK_HELD_BACK ? "held back"
                       : stage == DISK_QUEUES  ? "queue"
                                               : operation_word(request->operation);
    if (request->name == NO_DISK_NAME)
        snprintf(out, out_bytes, "disk %u:%u: %s", request->disk >> 20, request->disk & 0xfffff,
                 what);
    else
        snprintf(out, out_bytes, "disk %s: %s", host->names.items[request->name], what);
}
