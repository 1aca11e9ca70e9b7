// SPDX-License-Identifier: MIT
#include "analysis/decomposition/tracers.h"

#include "analysis/timeline/pauses.h"
#include "base/array.h"

bool tracer_of(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
               struct waker *tracer)
{
    enum { MOST_PAUSES = 64, LATELY_NS = 1000000000 };
    size_t count, waking_count;
    const struct thread_moment *pauses = thread_moments_of(&host->pauses, thread, &count);
    const struct waking *wakings = host_timeline_wakings(host, thread, &waking_count);
    size_t after = pauses ? thread_moments_before(pauses, count, time_ns) : 0, at = after;
    while (at > 0 && after - at < MOST_PAUSES && pauses[at - 1].value != PAUSE_TRACED)
        at--;
    if (at == 0 || after - at == MOST_PAUSES || time_ns - pauses[at - 1].time_ns > LATELY_NS)
        return false;
    size_t ends = array_bound(0, waking_count, i, wakings[i].time_ns < pauses[at - 1].time_ns);
    if (ends == waking_count)
        return false;
    *tracer = waker_of(host, &wakings[ends]);
    return tracer->kind == WAKER_THREAD;
}

bool tracer_stopped(const struct host_timeline *host, const struct thread_stint *stint)
{
    uint32_t pause;
    return stint->left == STINT_SLEEPS && pause_after(host, stint, &pause) && pause == PAUSE_TRACED;
}
