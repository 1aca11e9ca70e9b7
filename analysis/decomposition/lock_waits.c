// SPDX-License-Identifier: MIT
#include "analysis/decomposition/lock_waits.h"

#include "analysis/decomposition/dispatchers.h"
#include "analysis/decomposition/futex_waits.h"
#include "analysis/decomposition/loop_workers.h"
#include "analysis/decomposition/runtime_turns.h"
#include "analysis/decomposition/sleep_names.h"
#include "analysis/timeline/pauses.h"
#include "base/array.h"

enum {
    BRIEF_NS = 200000, // a thread that runs for less has only turned to the next thing
    TRY_NS = 10000000, // a wait for a time, not for a lock, takes longer as a rule
};

// Whether two processes may share memory: those of a server that forks do.
static bool are_related(const struct host_timeline *host, uint32_t one, uint32_t other)
{
    const struct thread_owner *a = host_timeline_owner(host, one);
    const struct thread_owner *b = host_timeline_owner(host, other);
    return !a || !b || a->process == b->process || a->parent == b->process ||
           a->process == b->parent || a->parent == b->parent;
}

// Some kernels do not deliver that a thread comes: then only what it did says that it was there.
// But what wakes a thread of its own process is no interrupt, unless that is a timer's.
static bool woke_unseen(const struct host_timeline *host, const struct waking *waking)
{
    return waking->waker != waking->thread &&
           sleep_same_process(host, waking->waker, waking->thread) &&
           !futex_timer_may_end(host, waking);
}

struct waker lock_waker(const struct host_timeline *host, const struct waking *waking)
{
    struct waker waker = waker_of(host, waking);
    if (waker.kind == WAKER_UNKNOWN && woke_unseen(host, waking))
        waker.span = thread_span_before(host, waking->waker, waking->time_ns + 1);
    if (waker.kind == WAKER_UNKNOWN && waker.span)
        waker.kind = WAKER_THREAD;
    if (waker.kind == WAKER_THREAD && !are_related(host, waking->thread, waker.thread))
        waker = (struct waker){.thread = waker.thread};
    return waker;
}

// --- again and again -----------------------------------------------------------------------------

// The stint after which a thread sleeps again, from `at` on, where it only turns to that. count:
// there is none.
static size_t sleeps_again(const struct thread_stint *stints, size_t count, size_t at)
{
    int64_t ran_ns = 0;
    for (; at < count; at++) {
        ran_ns += stints[at].end_ns - stints[at].begin_ns;
        if (stints[at].left == STINT_SLEEPS)
            break;
        if (stints[at].left != STINT_PREEMPTED)
            return count;
    }
    return ran_ns < BRIEF_NS ? at : count;
}

// Whether a wait of `ns` may be the next try after one of `before_ns`. The time limit of tries
// stays what it is or, where it began short, grows as they fail; a try that succeeds takes no
// longer.
static bool is_next_try(int64_t ns, int64_t before_ns, int64_t first_ns, bool in_time)
{
    enum { GROWS = 16 };
    return ns < TRY_NS ||
           (ns / (first_ns < TRY_NS ? GROWS : 2) < before_ns && (in_time || ns > before_ns / 2));
}

// Whether the thread has to do with a socket in that time: what it waits for next is for another
// message.
static bool calls_between(const struct application_calls *all, uint32_t thread, int64_t begin_ns,
                          int64_t end_ns)
{
    size_t count = 0;
    const struct application_call *calls = all ? application_calls_of(all, thread, &count) : NULL;
    size_t after = calls ? application_calls_after(calls, count, begin_ns) : 0;
    return after < count && calls[after].entry_ns < end_ns;
}

// Whether what a thread slept for after two of its stints may be the same.
static bool may_be_same_word(const struct host_timeline *host, const struct thread_stint *one,
                             const struct thread_stint *other)
{
    const struct futex_wait *first = futex_wait_after(host, one);
    const struct futex_wait *second = futex_wait_after(host, other);
    return !first || !second || first->word == second->word;
}

// What ends the last of a thread's waits for another one, of which the first, of first_ns and after
// the stint `first`, was ended by a timer and the others follow from the stint `at` on; into the
// series with it, if there is one.
static void find_last(const struct diagnosis_input *in, uint32_t thread, size_t at,
                      const struct thread_stint *first, int64_t first_ns,
                      struct wait_series *series)
{
    enum { MOST_WAITS = 4096 };
    size_t count, waking_count;
    uint32_t kind, pause;
    int64_t before_ns = first_ns;
    const struct thread_stint *stints = host_timeline_stints(in->server, thread, &count);
    const struct waking *wakings = host_timeline_wakings(in->server, thread, &waking_count);
    if (!pause_after(in->server, first, &kind))
        return;
    for (unsigned waits = 0; waits < MOST_WAITS && at < count; waits++, at++) {
        int64_t resumed_ns = stints[at].begin_ns;
        at = sleeps_again(stints, count, at);
        if (at == count || !pause_after(in->server, &stints[at], &pause) ||
            !pause_awaits_thread(pause) ||
            (pause == PAUSE_INTERPRETER) != (kind == PAUSE_INTERPRETER) ||
            !may_be_same_word(in->server, first, &stints[at]) ||
            calls_between(in->calls, thread, resumed_ns, stints[at].end_ns) ||
            dispatcher_gave_word(in->server, thread, thread, resumed_ns, stints[at].end_ns))
            return; // its time had come, as that of one with others' timers
        size_t ends = array_bound(0, waking_count, i, wakings[i].time_ns < stints[at].end_ns);
        if (ends == waking_count)
            return;
        struct waker last = lock_waker(in->server, &wakings[ends]);
        int64_t ns = wakings[ends].time_ns - stints[at].end_ns;
        if (!is_next_try(ns, before_ns, first_ns, last.kind != WAKER_TIMER))
            return;
        series->end_ns = stints[at].end_ns;
        series->last = last;
        series->woken_ns = wakings[ends].time_ns;
        if (last.kind != WAKER_TIMER)
            return;
        before_ns = ns;
    }
}

struct waker lock_waker_at_last(struct decomposer *decomposer, uint32_t thread,
                                const struct thread_period *period, struct waker waker,
                                int64_t *woken_ns)
{
    const struct host_timeline *host = decomposer->in->server;
    struct wait_series *series = &decomposer->series[thread % WAIT_SERIES];
    int64_t begin_ns = period->before ? period->before->end_ns : 0;
    size_t count;
    uint32_t pause;
    *woken_ns = period->end_ns;
    if (!period->next || !period->before || period->before->left != STINT_SLEEPS ||
        !pause_after(host, period->before, &pause) || !pause_awaits_thread(pause) ||
        (waker.kind != WAKER_TIMER && pause != PAUSE_INTERPRETER && pause != PAUSE_PARKED))
        return waker;
    if (pause == PAUSE_PARKED) {
        go_processor_holder(host, thread, period->begin_ns, period->end_ns, &waker);
        return waker;
    }
    if (series->thread != thread || begin_ns < series->begin_ns || begin_ns > series->end_ns) {
        size_t next = (size_t)(period->next - host_timeline_stints(host, thread, &count));
        int64_t first_ns = (period->waking ? period->waking->time_ns : period->end_ns) - begin_ns;
        *series = (struct wait_series){
            .thread = thread, .begin_ns = begin_ns, .end_ns = begin_ns, .last = waker};
        if (waker.kind == WAKER_TIMER)
            find_last(decomposer->in, thread, next, period->before, first_ns, series);
    }
    if (series->last.kind == WAKER_THREAD)
        waker = series->last;
    // A lock has several holders, one after the other, and it may be free as the thread tries
    // again.
    if (pause == PAUSE_INTERPRETER)
        interpreter_lock_holder(host, thread, period->begin_ns, period->end_ns, &waker);
    else if (series->end_ns > series->begin_ns || period->end_ns - period->begin_ns < TRY_NS)
        lock_holder_meanwhile(host, thread, period->begin_ns, period->end_ns, &waker);
    if (series->last.kind == WAKER_THREAD && waker.thread == series->last.thread)
        *woken_ns = series->woken_ns;
    return waker;
}

// --- through many hands --------------------------------------------------------------------------

static bool was_in_queue(const struct host_timeline *host, uint32_t pause, uint32_t waker,
                         int64_t begin_ns, int64_t end_ns, struct waker *before, int64_t *since_ns)
{
    size_t count, waking_count;
    uint32_t own;
    int64_t ran_ns = 0;
    const struct thread_stint *stints = host_timeline_stints(host, waker, &count);
    const struct waking *wakings = host_timeline_wakings(host, waker, &waking_count);
    size_t after = array_bound(0, count, at, stints[at].begin_ns < end_ns);
    for (; after > 0 && ran_ns < BRIEF_NS; after--) {
        const struct thread_stint *stint = &stints[after - 1];
        if (stint->end_ns >= end_ns || stint->left == STINT_PREEMPTED ||
            stint->left == STINT_THROTTLED) {
            ran_ns += (stint->end_ns < end_ns ? stint->end_ns : end_ns) - stint->begin_ns;
            continue;
        }
        if (stint->left != STINT_SLEEPS || !pause_after(host, stint, &own) || own != pause)
            return false;
        size_t ends = array_bound(0, waking_count, at, wakings[at].time_ns < stint->end_ns);
        if (ends == waking_count || wakings[ends].time_ns <= begin_ns ||
            wakings[ends].time_ns >= end_ns)
            return false;
        *since_ns = wakings[ends].time_ns;
        *before = lock_waker(host, &wakings[ends]);
        return before->kind == WAKER_THREAD && before->thread != waker;
    }
    return false;
}

// Who gets what is free without a wait for it, before those that wait have come to run, gives it on
// to one of them as if it had had it all along.
static bool was_given(const struct host_timeline *host, const struct thread_stint *stint,
                      uint32_t waker, int64_t begin_ns, int64_t end_ns, struct waker *before,
                      int64_t *since_ns)
{
    enum { MOST_WAITS = 512 }; // looked at
    const struct futex_wait *own = futex_wait_after(host, stint);
    const struct futex_word word = own ? futex_word_of(host, own) : (struct futex_word){0};
    size_t after = array_bound(0, word.count, at, word.waits[at].time_ns < end_ns);
    bool found = false;
    for (size_t i = 0; i < MOST_WAITS && i < after; i++) {
        const struct futex_wait *other = &word.waits[after - 1 - i];
        const struct waking *waking = futex_waking(host, other);
        if (!waking || waking->time_ns <= begin_ns || waking->time_ns >= end_ns ||
            (found && waking->time_ns <= *since_ns) || other->thread == stint->thread ||
            !sleep_same_process(host, other->thread, stint->thread))
            continue;
        const struct waker giver = lock_waker(host, waking);
        if (giver.kind != WAKER_THREAD || giver.thread == waker)
            continue;
        found = true;
        *before = giver;
        *since_ns = waking->time_ns;
    }
    return found;
}

bool lock_passed_on(const struct host_timeline *host, const struct thread_stint *stint,
                    uint32_t waker, int64_t begin_ns, int64_t end_ns, struct waker *before,
                    int64_t *since_ns)
{
    uint32_t pause;
    return was_given(host, stint, waker, begin_ns, end_ns, before, since_ns) ||
           (pause_after(host, stint, &pause) &&
            was_in_queue(host, pause, waker, begin_ns, end_ns, before, since_ns));
}
