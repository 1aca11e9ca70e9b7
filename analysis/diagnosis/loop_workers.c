// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/loop_workers.h"

#include "analysis/diagnosis/sleep_names.h"
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

struct idle_time {
    const struct host_timeline *host;
    int64_t ns;
};

static void add_idle_period(const struct thread_period *period, void *context)
{
    struct idle_time *idle = context;
    uint32_t pause;
    bool sleeps = period->state == THREAD_SLEEPS || period->state == THREAD_UNKNOWN;
    bool in_its_work = sleeps && period->before && period->before->left == STINT_SLEEPS &&
                       pause_after(idle->host, period->before, &pause) &&
                       !pause_may_await_work(pause);
    idle->ns += sleeps && !in_its_work ? period->end_ns - period->begin_ns : 0;
}

static bool works(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                  int64_t end_ns)
{
    struct idle_time idle = {.host = host};
    thread_periods(host, thread, begin_ns, end_ns, add_idle_period, &idle);
    return idle.ns * 10 < end_ns - begin_ns;
}

bool loop_worker_meanwhile(const struct host_timeline *host, uint32_t loop, int64_t begin_ns,
                           int64_t end_ns, struct waker *worker)
{
    enum { MOST_WAKINGS = 256 }; // to look at, before and after
    size_t count;
    const struct waking *wakings = host_timeline_wakings(host, loop, &count);
    size_t after = array_bound(0, count, at, wakings[at].time_ns <= end_ns);
    for (size_t away = 0; away < MOST_WAKINGS; away++) {
        const size_t near[] = {after + away, after - 1 - away};
        for (size_t i = 0; i < 2; i++) { // an index below 0 is beyond all
            const struct waking *waking = near[i] < count ? &wakings[near[i]] : NULL;
            if (!waking || !loop_worker_woke(host, waking) || !loop_wait_ended(host, waking))
                continue;
            const struct waker waker = waker_of(host, waking);
            if (works(host, waker.thread, begin_ns, end_ns)) {
                *worker = waker;
                return true;
            }
        }
    }
    return false;
}
