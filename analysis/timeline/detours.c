// SPDX-License-Identifier: MIT
#include "analysis/timeline/detours.h"

#include <stdio.h>
#include <string.h>

#include "analysis/timeline/pauses.h"
#include "base/array.h"
#include "profiler/bpf/event_log.h"

static const char *kind_name(uint16_t kind)
{
    switch ((enum event_detour)kind) {
#define EVENT_DETOUR(NAME, number, cause)                                                          \
    case DETOUR_##NAME:                                                                            \
        return cause;
#include "profiler/bpf/events.tbl.h"
    }
    return "memory management";
}

// The control group that was at its limit, by name; NULL: not known.
static const char *limited_group(const struct host_timeline *host, const struct detour *detour)
{
    size_t count;
    const struct thread_moment *limits = thread_moments_of(&host->limits, detour->thread, &count);
    size_t at = limits ? thread_moments_before(limits, count, detour->begin_ns) : 0;
    bool within = limits && at < count && limits[at].time_ns <= detour->end_ns;
    return within ? host->names.items[limits[at].value] : NULL;
}

char *detour_name(const struct host_timeline *host, const struct detour *detour, char *out,
                  size_t out_bytes)
{
    const char *name = kind_name(detour->kind), *group = NULL;
    if (detour->kind == DETOUR_GROUP_RECLAIM || detour->kind == DETOUR_HELD_BACK)
        group = limited_group(host, detour);
    if (group)
        snprintf(out, out_bytes, "%.*s of %s)", (int)strlen(name) - 1, name, group);
    else
        snprintf(out, out_bytes, "%s", name);
    return out;
}

// Finds the ends that were not recorded: swapping in began with the thread's latest page fault,
// waiting for writeback, or at a limit, lasts until it runs again. A page fault's return is not
// recorded either.
static void complete_detour(const struct host_timeline *host, struct detour *detour)
{
    size_t count;
    if (detour->kind == DETOUR_SWAP_IN) {
        const struct thread_pages pages = thread_pages_of(host, detour->thread);
        size_t before = pages.faults
                            ? thread_moments_before(pages.faults, pages.fault_count, detour->end_ns)
                            : 0;
        int64_t over_ns = page_fault_end_ns(&pages, detour->end_ns);
        detour->begin_ns = before ? pages.faults[before - 1].time_ns : detour->end_ns;
        detour->end_ns = over_ns > detour->end_ns ? over_ns : detour->end_ns + PAGE_FAULT_RETURN_NS;
    }
    if (detour->kind == DETOUR_DIRTY || detour->kind == DETOUR_HELD_BACK) {
        const struct thread_stint *stints = host_timeline_stints(host, detour->thread, &count);
        size_t next = array_bound(0, count, i, stints[i].begin_ns <= detour->begin_ns);
        detour->end_ns = next < count ? stints[next].begin_ns : detour->end_ns;
    }
}

// What lies inside another one is cut out of it: swapping in may have to reclaim first.
static int settle_detours(struct detour_array *all)
{
    for (size_t i = 1; i < all->count; i++) {
        struct detour *outer = &all->items[i - 1], *inner = &all->items[i];
        if (outer->thread != inner->thread || outer->end_ns <= inner->begin_ns)
            continue;
        struct detour rest = *outer;
        outer->end_ns = inner->begin_ns;
        rest.begin_ns = inner->end_ns;
        if (rest.end_ns <= rest.begin_ns)
            continue;
        if (array_push(all, rest) < 0)
            return -1;
        memmove(&all->items[i + 2], &all->items[i + 1], (all->count - i - 2) * sizeof *all->items);
        all->items[i + 1] = rest;
    }
    return 0;
}

static int compare_detours(const void *left, const void *right)
{
    const struct detour *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->begin_ns, b->begin_ns);
}

int detours_settle(struct host_timeline *host)
{
    for (size_t i = 0; i < host->detours.count; i++)
        complete_detour(host, &host->detours.items[i]);
    array_sort(&host->detours, compare_detours);
    array_sort(&host->own_work, compare_detours);
    return settle_detours(&host->detours) < 0 || settle_detours(&host->own_work) < 0 ? -1 : 0;
}

void detours_calibrate(struct host_timeline *host, int64_t page_fault_ns, int64_t before_ns)
{
    struct detour_array *all = &host->detours;
    host->page_fault_ns = page_fault_ns;
    host->page_fault_before_ns = before_ns;
    for (size_t i = 0; i < all->count; i++) {
        struct detour *detour = &all->items[i];
        if (detour->kind != DETOUR_SWAP_IN)
            continue;
        const struct thread_pages pages = thread_pages_of(host, detour->thread);
        int64_t over_ns = page_fault_end_ns(&pages, detour->begin_ns + 1);
        if (i + 1 < all->count && detour[1].thread == detour->thread &&
            detour[1].begin_ns < over_ns)
            over_ns = detour[1].begin_ns;
        detour->end_ns = over_ns > detour->end_ns ? over_ns : detour->end_ns;
        detour->begin_ns -= before_ns;
        if (i > 0 && detour[-1].thread == detour->thread && detour->begin_ns < detour[-1].end_ns)
            detour->begin_ns = detour[-1].end_ns;
    }
}

static const struct detour *find_detour(const struct detour_array *all, uint32_t thread,
                                        int64_t time_ns, int64_t *until_ns)
{
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

const struct detour *detour_at(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
                               int64_t *until_ns)
{
    return find_detour(&host->detours, thread, time_ns, until_ns);
}

bool own_work_at(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
                 int64_t *until_ns)
{
    *until_ns = INT64_MAX;
    return host && find_detour(&host->own_work, thread, time_ns, until_ns);
}

const struct detour *call_at(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
                             int64_t *until_ns)
{
    *until_ns = INT64_MAX;
    return host ? find_detour(&host->calls, thread, time_ns, until_ns) : NULL;
}

bool forked_before(const struct host_timeline *host, uint32_t thread, int64_t time_ns)
{
    for (size_t i = 0; i < host->forks.count; i++)
        if (host->forks.items[i].time_ns < time_ns &&
            host_timeline_process(host, host->forks.items[i].thread) ==
                host_timeline_process(host, thread))
            return true;
    return false;
}
