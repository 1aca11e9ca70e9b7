// SPDX-License-Identifier: MIT
#include "analysis/decomposition/vain_waits.h"

#include "analysis/decomposition/futex_waits.h"
#include "analysis/decomposition/lock_waits.h"
#include "analysis/decomposition/runtime_turns.h"
#include "analysis/decomposition/sleep_names.h"
#include "analysis/timeline/pauses.h"
#include "base/array.h"
#include "profiler/bpf/event_log.h"

// A limit is what is left of it as the thread goes to sleep.
static bool same_limit(const struct futex_wait *one, const struct futex_wait *other)
{
    enum { LATE_US = 200, PART = 50 };
    uint32_t longer = one->limit_us > other->limit_us ? one->limit_us : other->limit_us;
    uint32_t shorter = one->limit_us + other->limit_us - longer;
    return shorter > 0 && longer != FUTEX_LIMIT_UNKNOWN &&
           longer - shorter <= LATE_US + longer / PART;
}

// Waits for the same as `own`, at `from` of them or thereabouts, are among these: all at its word,
// or, where each thread waits at a word of its own, those of its process with its limit.
struct kindred {
    const struct host_timeline *host;
    const struct futex_wait *own, *waits;
    size_t count, from;
    bool own_words;
};

static bool is_kin(const struct kindred *kin, const struct futex_wait *other)
{
    return other->thread != kin->own->thread && (!kin->own_words || same_limit(kin->own, other)) &&
           sleep_same_process(kin->host, kin->own->thread, other->thread);
}

// By how much the times at which two threads were seen to begin must differ to tell who was first:
// on a busy core one may be kept from its wait for long after it has queued for it.
static int64_t order_ns(const struct kindred *kin)
{
    return (int64_t)kin->own->limit_us * 1000 / 8;
}

// Whether that thread gave something to one that began to wait after `own`, which went on waiting
// until end_ns: that was something else then, as they are served in turn.
static bool gives_out_of_turn(const struct kindred *kin, int64_t end_ns, uint32_t giver)
{
    bool found = false;
    for (size_t at = kin->from; at < kin->count && kin->waits[at].time_ns < end_ns && !found;
         at++) {
        const struct waking *waking =
            is_kin(kin, &kin->waits[at]) ? futex_waking(kin->host, &kin->waits[at]) : NULL;
        found = waking && waking->time_ns < end_ns && waking->waker == giver &&
                kin->waits[at].time_ns > kin->own->time_ns + order_ns(kin) &&
                lock_waker(kin->host, waking).kind == WAKER_THREAD;
    }
    return found;
}

enum { MOST_BEFORE = 1024, MOST_AFTER = 16384 }; // to look at

static size_t kindred_first(const struct kindred *kin)
{
    return kin->from > MOST_BEFORE ? kin->from - MOST_BEFORE : 0;
}

// Whether one that had begun to wait before another was still waiting when that one was given what
// it wanted: they wait for different things.
static bool leaves_older(const struct kindred *kin, const struct futex_wait *given,
                         int64_t given_ns)
{
    bool found = false;
    for (size_t at = kindred_first(kin);
         at < kin->count && kin->waits[at].time_ns < given->time_ns - order_ns(kin) && !found;
         at++) {
        const struct waking *waking = futex_waking(kin->host, &kin->waits[at]);
        found =
            is_kin(kin, &kin->waits[at]) && (!waking || waking->time_ns > given_ns + order_ns(kin));
    }
    return found;
}

// Of the waits like it, which a timer ended at end_ns, that others began before that, or while one
// of these lasted: the first after end_ns that another thread ended.
static bool find_giver(const struct kindred *kin, int64_t end_ns, struct waker *giver,
                       int64_t *given_ns)
{
    const struct futex_wait *waits = kin->waits, *given = NULL;
    int64_t until_ns = end_ns; // up to when somebody waited without a break
    for (size_t at = kindred_first(kin);
         at < kin->count && at < kin->from + MOST_AFTER && waits[at].time_ns < until_ns; at++) {
        const struct waking *waking =
            is_kin(kin, &waits[at]) ? futex_waking(kin->host, &waits[at]) : NULL;
        if (!waking || waking->time_ns <= end_ns)
            continue;
        const struct waker waker = lock_waker(kin->host, waking);
        int64_t ended_ns = waking->time_ns;
        if (waker.kind == WAKER_THREAD && (!given || ended_ns < *given_ns) &&
            !(kin->own_words && gives_out_of_turn(kin, end_ns, waker.thread))) {
            given = &waits[at];
            *giver = waker;
            *given_ns = until_ns = ended_ns;
        } else if (!given && waker.kind == WAKER_TIMER && ended_ns > until_ns) {
            until_ns = ended_ns;
        }
    }
    return given && giver->thread != kin->own->thread &&
           !(kin->own_words && leaves_older(kin, given, *given_ns));
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

// The only thread that ended waits like it, more than once, of those that did not themselves wait
// meanwhile: nobody else ever gives what it was for.
static bool find_only_giver(const struct kindred *kin, int64_t end_ns, struct waker *giver)
{
    enum { MOST_GIVERS = 16 };
    struct waker givers[MOST_GIVERS];
    unsigned gives[MOST_GIVERS] = {0}, count = 0, only = 0;
    for (size_t at = kindred_first(kin); at < kin->count && at < kin->from + MOST_AFTER; at++) {
        const struct waking *waking =
            is_kin(kin, &kin->waits[at]) ? futex_waking(kin->host, &kin->waits[at]) : NULL;
        const struct waker waker = waking ? lock_waker(kin->host, waking) : (struct waker){0};
        if (waker.kind != WAKER_THREAD || waker.thread == kin->own->thread)
            continue;
        unsigned known = 0;
        while (known < count && givers[known].thread != waker.thread)
            known++;
        if (known == MOST_GIVERS)
            return false;
        givers[known] = waker;
        gives[known]++;
        count += known == count;
    }
    for (unsigned i = 0; i < count; i++) {
        if (waits_itself(kin->host, givers[i].thread, kin->own->time_ns, end_ns) ||
            (kin->own_words && gives_out_of_turn(kin, end_ns, givers[i].thread)))
            continue;
        *giver = givers[i];
        only += gives[i] > 1 ? 1 : 2;
    }
    return only == 1;
}

// Whether several threads wait at a word at a time, about when one does; else it is each one's own.
static bool is_shared(const struct kindred *kin)
{
    bool found = false;
    for (size_t at = kindred_first(kin);
         at + 1 < kin->count && at < kin->from + MOST_BEFORE && !found; at++) {
        const struct futex_wait *one = &kin->waits[at], *next = &kin->waits[at + 1];
        const struct waking *waking =
            one->thread != next->thread && sleep_same_process(kin->host, one->thread, next->thread)
                ? futex_waking(kin->host, one)
                : NULL;
        found = waking && waking->time_ns > next->time_ns;
    }
    return found;
}

static struct kindred kindred_at(const struct host_timeline *host, const struct futex_wait *own,
                                 const struct futex_wait *waits, size_t count)
{
    struct kindred kin = {.host = host, .own = own, .waits = waits, .count = count};
    kin.from = array_bound(0, count, at, waits[at].time_ns < own->time_ns);
    return kin;
}

bool vain_wait_giver(const struct host_timeline *host, const struct thread_period *period,
                     struct waker *giver, int64_t *given_ns)
{
    const struct futex_wait *own =
        period->before && period->waking ? futex_wait_after(host, period->before) : NULL;
    if (!own)
        return false;
    const int64_t end_ns = period->waking->time_ns;
    const struct futex_word word = futex_word_of(host, own);
    struct kindred kin = kindred_at(host, own, word.waits, word.count);
    struct waker found;
    int64_t found_ns = period->end_ns;
    if (!is_shared(&kin)) {
        kin = kindred_at(host, own, host->futexes.items, host->futexes.count);
        kin.own_words = true;
        if (!own->limit_us || own->limit_us == FUTEX_LIMIT_UNKNOWN ||
            !python_schedules(host, own->thread, own->time_ns))
            return false;
    }
    bool given = find_giver(&kin, end_ns, &found, &found_ns) &&
                 !(kin.own_words && waits_itself(host, found.thread, own->time_ns, end_ns));
    if (!given)
        found_ns = period->end_ns;
    if (!given && !find_only_giver(&kin, end_ns, &found))
        return false;
    *giver = found;
    *given_ns = found_ns;
    return true;
}
