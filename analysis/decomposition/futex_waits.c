// SPDX-License-Identifier: MIT
#include "analysis/decomposition/futex_waits.h"

#include "base/array.h"
#include "profiler/bpf/event_log.h"

const struct futex_wait *futex_wait_after(const struct host_timeline *host,
                                          const struct thread_stint *stint)
{
    const struct futex_wait_array *all = &host->futexes;
    size_t after = array_bound(0, all->count, at, all->items[at].time_ns <= stint->end_ns);
    for (; after > 0 && all->items[after - 1].time_ns >= stint->begin_ns; after--)
        if (all->items[after - 1].thread == stint->thread)
            return &all->items[after - 1];
    return NULL;
}

struct futex_word futex_word_of(const struct host_timeline *host, const struct futex_wait *wait)
{
    const struct futex_wait *all = host->words.items;
    size_t from = array_bound(0, host->words.count, at, all[at].word < wait->word);
    size_t until = array_bound(from, host->words.count, at, all[at].word <= wait->word);
    return (struct futex_word){.waits = all + from, .count = until - from};
}

const struct waking *futex_waking(const struct host_timeline *host, const struct futex_wait *wait)
{
    size_t count;
    const struct waking *wakings = host_timeline_wakings(host, wait->thread, &count);
    size_t ends = array_bound(0, count, at, wakings[at].time_ns < wait->time_ns);
    return ends < count ? &wakings[ends] : NULL;
}

bool futex_timer_may_end(const struct host_timeline *host, const struct waking *waking)
{
    size_t count;
    const struct thread_stint *stints = host_timeline_stints(host, waking->thread, &count);
    size_t after = array_bound(0, count, at, stints[at].end_ns <= waking->time_ns);
    const struct futex_wait *wait = after > 0 ? futex_wait_after(host, &stints[after - 1]) : NULL;
    return !wait || wait->limit_us == FUTEX_LIMIT_UNKNOWN ||
           (wait->limit_us > 0 &&
            waking->time_ns - wait->time_ns >= (int64_t)wait->limit_us * 1000);
}
