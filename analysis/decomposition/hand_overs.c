// SPDX-License-Identifier: MIT
#include "analysis/decomposition/hand_overs.h"

#include "analysis/decomposition/lock_waits.h"
#include "analysis/timeline/pauses.h"

// What takes less may be the queue's own lock.
enum { AWAITS_NS = 200000 };

struct first_sleep {
    struct thread_period sleep;
    bool found;
};

static void keep_first_sleep(const struct thread_period *period, void *context)
{
    struct first_sleep *first = context;
    if (period->state == THREAD_SLEEPS && !first->found)
        *first = (struct first_sleep){*period, true};
}

static bool awaits_word(const struct host_timeline *host, const struct thread_period *sleep)
{
    uint32_t pause;
    return sleep->before->left == STINT_SLEEPS && pause_after(host, sleep->before, &pause) &&
           pause == PAUSE_CONDITION;
}

// When the thread that had read the message first slept, for what need not have to do with it.
static int64_t first_rest(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                          int64_t end_ns)
{
    struct first_sleep first = {.found = false};
    uint32_t pause;
    thread_periods(host, thread, begin_ns, end_ns, keep_first_sleep, &first);
    const struct thread_stint *before = first.sleep.before;
    return first.found && (before->left == STINT_WAITS ||
                           (pause_after(host, before, &pause) && pause_may_await_work(pause)))
               ? first.sleep.begin_ns
               : end_ns;
}

bool hand_over_find(const struct diagnosis_input *in, const struct lifetime *life, uint32_t replier,
                    int64_t received_ns, int64_t left_ns, int64_t taken_ns, int64_t reply_ns,
                    struct hand_over *over)
{
    const struct host_timeline *host = in->server;
    struct first_sleep first = {.found = false};
    if (!host || replier == life->thread || taken_ns <= received_ns)
        return false;
    thread_periods(host, replier, taken_ns, reply_ns, keep_first_sleep, &first);
    if (!first.found || !first.sleep.waking || !awaits_word(host, &first.sleep) ||
        first.sleep.end_ns - first.sleep.begin_ns < AWAITS_NS)
        return false;
    const struct waker waker = lock_waker(host, first.sleep.waking);
    if (waker.kind == WAKER_UNKNOWN || (waker.kind == WAKER_THREAD && waker.thread == life->thread))
        return false;
    over->sleep = first.sleep;
    over->left_ns = first_rest(host, life->thread, received_ns, left_ns);
    return true;
}
