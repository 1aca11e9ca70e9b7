// SPDX-License-Identifier: MIT
#include "analysis/decomposition/loop_workers.h"

#include "analysis/decomposition/sleep_names.h"
#include "analysis/timeline/pauses.h"
#include "base/array.h"

bool loop_wait_ended(const struct host_timeline *host, const struct waking *waking)
{
    size_t count;
    const struct thread_stint *stints = host_timeline_stints(host, waking->thread, &count);
    size_t after = array_bound(0, count, at, stints[at].end_ns <= waking->time_ns);
    return after > 0 && stints[after - 1].left == STINT_WAITS;
}

bool loop_worker_woke(const struct host_timeline *host, const struct waking *waking)
{
    struct waker waker = waker_of(host, waking);
    return waker.kind == WAKER_THREAD && waker.thread != waking->thread &&
           sleep_same_process(host, waker.thread, waking->thread);
}

bool loop_child_woke(const struct host_timeline *host, const struct waking *waking)
{
    struct waker waker = waker_of(host, waking);
    const struct thread_owner *own = host_timeline_owner(host, waking->thread);
    const struct thread_owner *other =
        waker.kind == WAKER_THREAD ? host_timeline_owner(host, waker.thread) : NULL;
    return own && other && other->process != own->process && other->parent == own->process;
}

const struct waking *loop_word_of_another(const struct host_timeline *host,
                                          const struct waking *further, uint32_t asker,
                                          int64_t until_ns)
{
    enum { MOST_WAKINGS = 256 };
    size_t count;
    const struct waking *wakings = host_timeline_wakings(host, further->thread, &count);
    size_t first = array_bound(0, count, at, wakings[at].time_ns <= further->time_ns);
    for (size_t at = first;
         at < count && at < first + MOST_WAKINGS && wakings[at].time_ns < until_ns; at++) {
        const struct waker waker = waker_of(host, &wakings[at]);
        if (waker.kind == WAKER_THREAD && waker.thread != asker &&
            waker.thread != further->thread && loop_wait_ended(host, &wakings[at]))
            return &wakings[at];
    }
    return NULL;
}

// Whether it ended a wait for another thread: for a lock or a condition.
static bool lock_wait_ended(const struct host_timeline *host, const struct waking *waking)
{
    size_t count;
    uint32_t pause;
    const struct thread_stint *stints = host_timeline_stints(host, waking->thread, &count);
    size_t after = array_bound(0, count, at, stints[at].end_ns <= waking->time_ns);
    return after > 0 && stints[after - 1].left == STINT_SLEEPS &&
           pause_after(host, &stints[after - 1], &pause) && pause_awaits_thread(pause);
}

// Whether a thread left its last wait for another one, but for its turn of the interpreter, because
// `giver` woke it: it does what that one gave it.
static bool was_given(const struct host_timeline *host, uint32_t thread, uint32_t giver,
                      int64_t time_ns)
{
    enum { MOST_STINTS = 64 }; // back
    size_t count, waking_count;
    uint32_t pause;
    const struct thread_stint *stints = host_timeline_stints(host, thread, &count);
    size_t after = array_bound(0, count, at, stints[at].end_ns < time_ns);
    for (size_t i = 0; i < MOST_STINTS && after > 0; i++, after--) {
        const struct thread_stint *stint = &stints[after - 1];
        if (stint->left != STINT_SLEEPS || !pause_after(host, stint, &pause) ||
            !pause_awaits_thread(pause) || pause == PAUSE_INTERPRETER)
            continue;
        const struct waking *wakings = host_timeline_wakings(host, thread, &waking_count);
        size_t ends = array_bound(0, waking_count, at, wakings[at].time_ns < stint->end_ns);
        return ends < waking_count && wakings[ends].waker == giver;
    }
    return false;
}

struct idle_time {
    const struct host_timeline *host;
    uint32_t giver; // 0: whoever it is
    int64_t ns;
};

static void add_idle_period(const struct thread_period *period, void *context)
{
    struct idle_time *idle = context;
    uint32_t pause;
    bool sleeps = period->state == THREAD_SLEEPS || period->state == THREAD_UNKNOWN;
    bool in_its_work =
        sleeps && period->before && period->before->left == STINT_SLEEPS &&
        pause_after(idle->host, period->before, &pause) && !pause_awaits_thread(pause) &&
        (!pause_may_await_work(pause) ||
         (idle->giver &&
          was_given(idle->host, period->before->thread, idle->giver, period->before->end_ns)));
    idle->ns += sleeps && !in_its_work ? period->end_ns - period->begin_ns : 0;
}

// Whether a thread awaits work, or another thread, in less than so many hundredths of a time. What
// `giver` gave it, if that is known, is no work that it awaits, whatever it sleeps for in that.
static bool works(const struct host_timeline *host, uint32_t thread, uint32_t giver,
                  int64_t begin_ns, int64_t end_ns, int64_t percent)
{
    struct idle_time idle = {.host = host, .giver = giver};
    thread_periods(host, thread, begin_ns, end_ns, add_idle_period, &idle);
    return idle.ns * 100 < (end_ns - begin_ns) * percent;
}

// Of the threads of its own process that woke a thread some time or other, from sleeps that
// `ended` is true of, the nearest to the end of [begin_ns, end_ns) that was idle for less than so
// many hundredths of it.
static bool waker_meanwhile(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                            int64_t end_ns, int64_t percent,
                            bool (*ended)(const struct host_timeline *, const struct waking *),
                            struct waker *worker)
{
    enum { MOST_WAKINGS = 256, LATEST = 8 }; // to look at, before and after; looked at
    uint32_t looked_at[LATEST] = {0};
    size_t count, wakers = 0;
    const struct waking *wakings = host_timeline_wakings(host, thread, &count);
    size_t after = array_bound(0, count, at, wakings[at].time_ns <= end_ns);
    for (size_t i = 0; i < 2 * MOST_WAKINGS; i++) {
        size_t near = i % 2 ? after - 1 - i / 2 : after + i / 2; // below 0 it is beyond all
        const struct waking *waking = near < count ? &wakings[near] : NULL;
        if (!waking || !loop_worker_woke(host, waking) || !ended(host, waking))
            continue;
        const struct waker waker = waker_of(host, waking);
        size_t known = 0;
        while (known < LATEST && looked_at[known] != waker.thread)
            known++;
        if (known < LATEST)
            continue;
        looked_at[wakers++ % LATEST] = waker.thread;
        if (works(host, waker.thread, ended == loop_wait_ended ? thread : 0, begin_ns, end_ns,
                  percent)) {
            *worker = waker;
            return true;
        }
    }
    return false;
}

bool loop_worker_meanwhile(const struct host_timeline *host, uint32_t loop, int64_t begin_ns,
                           int64_t end_ns, struct waker *worker)
{
    return waker_meanwhile(host, loop, begin_ns, end_ns, 10, loop_wait_ended, worker);
}

void lock_holder_meanwhile(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                           int64_t end_ns, struct waker *holder)
{
    enum { HALF = 50 };
    if (holder->kind != WAKER_THREAD || !works(host, holder->thread, 0, begin_ns, end_ns, HALF))
        waker_meanwhile(host, thread, begin_ns, end_ns, HALF, lock_wait_ended, holder);
}
