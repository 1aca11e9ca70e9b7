// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/vain_waits.h"

#include "analysis/diagnosis/futex_waits.h"
#include "analysis/diagnosis/lock_waits.h"
#include "analysis/diagnosis/runtime_turns.h"
#include "analysis/diagnosis/sleep_names.h"
#include "analysis/timeline/pauses.h"
#include "profiler/bpf/event_log.h"

static bool same_word(const struct futex_wait *one, const struct futex_wait *other)
{
    return one->word == other->word;
}

// A limit is what is left of it as the thread goes to sleep.
static bool same_limit(const struct futex_wait *one, const struct futex_wait *other)
{
    enum { LATE_US = 200, PART = 50 };
    uint32_t longer = one->limit_us > other->limit_us ? one->limit_us : other->limit_us;
    uint32_t shorter = one->limit_us + other->limit_us - longer;
    return shorter > 0 && longer != FUTEX_LIMIT_UNKNOWN &&
           longer - shorter <= LATE_US + longer / PART;
}

typedef bool likeness(const struct futex_wait *one, const struct futex_wait *other);

// Of the waits like `own`, which a timer ended at end_ns, that others of its process began before
// that, or while one of these lasted: the first after end_ns that another thread ended.
static bool find_giver(const struct host_timeline *host, const struct futex_wait *own,
                       int64_t end_ns, likeness *like, struct waker *giver, int64_t *given_ns)
{
    enum { MOST_BEFORE = 1024, MOST_AFTER = 16384 }; // to look at
    const struct futex_wait *waits = host->futexes.items;
    size_t count = host->futexes.count, from = (size_t)(own - waits);
    size_t at = from > MOST_BEFORE ? from - MOST_BEFORE : 0;
    int64_t until_ns = end_ns; // up to when somebody waited without a break
    bool found = false;
    for (; at < count && at < from + MOST_AFTER && waits[at].time_ns < until_ns; at++) {
        if (waits[at].thread == own->thread || !like(own, &waits[at]) ||
            !sleep_same_process(host, own->thread, waits[at].thread))
            continue;
        const struct waking *waking = futex_waking(host, &waits[at]);
        if (!waking || waking->time_ns <= end_ns)
            continue;
        const struct waker waker = lock_waker(host, waking);
        int64_t ended_ns = waking->time_ns;
        if (waker.kind == WAKER_THREAD && (!found || ended_ns < *given_ns)) {
            found = true;
            *giver = waker;
            *given_ns = until_ns = ended_ns;
        } else if (!found && waker.kind == WAKER_TIMER && ended_ns > until_ns) {
            until_ns = ended_ns;
        }
    }
    return found && giver->thread != own->thread;
}

struct waiting_time {
    const struct host_timeline *host;
    int64_t ns;
};

static void add_waiting_period(const struct thread_period *period, void *context)
{
    struct waiting_time *waiting = context;
    uint32_t pause;
    if (period->state == THREAD_UNKNOWN ||
        (period->state == THREAD_SLEEPS &&
         (sleep_awaits_socket(waiting->host, period->before) ||
          (pause_after(waiting->host, period->before, &pause) && pause_awaits_thread(pause)))))
        waiting->ns += period->end_ns - period->begin_ns;
}

// Whether a thread waited for others for half of a time, as one that has nothing to give does.
static bool waits_itself(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                         int64_t end_ns)
{
    struct waiting_time waiting = {.host = host};
    thread_periods(host, thread, begin_ns, end_ns, add_waiting_period, &waiting);
    return 2 * waiting.ns >= end_ns - begin_ns;
}

bool vain_wait_giver(const struct host_timeline *host, const struct thread_period *period,
                     struct waker *giver, int64_t *given_ns)
{
    const struct futex_wait *own =
        period->before && period->waking ? futex_wait_after(host, period->before) : NULL;
    int64_t end_ns = own ? period->waking->time_ns : 0;
    struct waker found;
    int64_t found_ns;
    if (!own || (!find_giver(host, own, end_ns, same_word, &found, &found_ns) &&
                 (!own->limit_us || !python_schedules(host, own->thread, own->time_ns) ||
                  !find_giver(host, own, end_ns, same_limit, &found, &found_ns) ||
                  waits_itself(host, found.thread, own->time_ns, end_ns))))
        return false;
    *giver = found;
    *given_ns = found_ns;
    return true;
}
