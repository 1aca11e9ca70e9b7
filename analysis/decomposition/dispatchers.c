// SPDX-License-Identifier: MIT
#include "analysis/decomposition/dispatchers.h"

#include "analysis/timeline/pauses.h"
#include "base/array.h"

static bool awaits_turn(uint32_t pause)
{
    return pause == PAUSE_INTERPRETER || pause == PAUSE_PARKED;
}

// Whether a waking ended a wait for another thread's word.
static bool gave_word(const struct host_timeline *host, const struct waking *waking)
{
    size_t count;
    uint32_t pause;
    const struct thread_stint *stints = host_timeline_stints(host, waking->thread, &count);
    size_t after = array_bound(0, count, at, stints[at].end_ns <= waking->time_ns);
    return after > 0 && stints[after - 1].left == STINT_SLEEPS &&
           pause_after(host, &stints[after - 1], &pause) && pause_awaits_thread(pause) &&
           !awaits_turn(pause);
}

bool dispatcher_gave_word(const struct host_timeline *host, uint32_t thread, uint32_t sleeper,
                          int64_t begin_ns, int64_t end_ns)
{
    const struct thread_owner *own = host_timeline_owner(host, thread);
    uint32_t last = thread;
    for (size_t i = 0; own && i < host->owners.count; i++) {
        const struct thread_owner *other = &host->owners.items[i];
        if (other->process != own->process || other->thread == last || other->thread == sleeper)
            continue;
        last = other->thread;
        size_t count;
        const struct waking *wakings = host_timeline_wakings(host, last, &count);
        size_t at = array_bound(0, count, k, wakings[k].time_ns < begin_ns);
        for (; at < count && wakings[at].time_ns < end_ns; at++)
            if (wakings[at].waker == thread && waker_of(host, &wakings[at]).kind == WAKER_THREAD &&
                gave_word(host, &wakings[at]))
                return true;
    }
    return false;
}

// The last of stints [0, after) after which the thread slept for work, whoever's turn it was then;
// NULL: it slept for something else, or there is none.
static const struct thread_stint *last_sleep(const struct host_timeline *host,
                                             const struct thread_stint *stints, size_t after)
{
    uint32_t pause;
    for (; after > 0; after--) {
        const struct thread_stint *stint = &stints[after - 1];
        if (stint->left == STINT_PREEMPTED || stint->left == STINT_THROTTLED)
            continue;
        if (stint->left != STINT_SLEEPS || !pause_after(host, stint, &pause))
            return NULL;
        if (!awaits_turn(pause))
            return pause_may_await_work(pause) && !pause_awaits_thread(pause) ? stint : NULL;
    }
    return NULL;
}

enum dispatched dispatcher_word(const struct host_timeline *host, uint32_t thread, uint32_t sleeper,
                                int64_t begin_ns, int64_t end_ns, struct thread_period *sleep)
{
    size_t count, waking_count;
    const struct thread_stint *stints = host_timeline_stints(host, thread, &count);
    const struct waking *wakings = host_timeline_wakings(host, thread, &waking_count);
    size_t after = array_bound(0, count, at, stints[at].end_ns < end_ns);
    const struct thread_stint *last = last_sleep(host, stints, after);
    if (!last || last->end_ns <= begin_ns)
        return DISPATCHED_NOT;
    size_t ends = array_bound(0, waking_count, at, wakings[at].time_ns < last->end_ns);
    if (ends == waking_count || wakings[ends].time_ns >= end_ns ||
        waker_of(host, &wakings[ends]).kind != WAKER_THREAD ||
        !dispatcher_gave_word(host, thread, sleeper, begin_ns, last->end_ns))
        return DISPATCHED_NOT;
    *sleep = (struct thread_period){.state = THREAD_SLEEPS,
                                    .begin_ns = begin_ns,
                                    .end_ns = wakings[ends].time_ns,
                                    .before = last,
                                    .next = last + 1 < stints + count ? last + 1 : NULL,
                                    .waking = &wakings[ends]};
    return dispatcher_gave_word(host, thread, sleeper, sleep->end_ns, end_ns) ? DISPATCHED_SEVERAL
                                                                              : DISPATCHED_WORD;
}
