// SPDX-License-Identifier: MIT
#include "analysis/timeline/detours.h"

#include "base/array.h"
#include "profiler/bpf/event_log.h"

const char *detour_name(uint8_t kind)
{
    switch ((enum event_detour)kind) {
#define EVENT_DETOUR(NAME, number, cause)                                                          \
    case DETOUR_##NAME:                                                                            \
        return cause;
#include "profiler/bpf/events.tbl.h"
    }
    return "memory management";
}

const struct detour *detour_at(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
                               int64_t *until_ns)
{
    const struct detour_array *all = &host->detours;
    size_t at = array_bound(0, all->count, i,
                            all->items[i].thread < thread || (all->items[i].thread == thread &&
                                                              all->items[i].end_ns <= time_ns));
    *until_ns = INT64_MAX;
    if (at == all->count || all->items[at].thread != thread)
        return NULL;
    const struct detour *detour = &all->items[at];
    bool inside = detour->begin_ns <= time_ns;
    *until_ns = inside ? detour->end_ns : detour->begin_ns;
    return inside ? detour : NULL;
}

static uint32_t process_of(const struct host_timeline *host, uint32_t thread)
{
    const struct thread_owner *owner = host_timeline_owner(host, thread);
    return owner ? owner->process : thread;
}

bool forked_before(const struct host_timeline *host, uint32_t thread, int64_t time_ns)
{
    for (size_t i = 0; i < host->forks.count; i++)
        if (host->forks.items[i].time_ns < time_ns &&
            process_of(host, host->forks.items[i].thread) == process_of(host, thread))
            return true;
    return false;
}
