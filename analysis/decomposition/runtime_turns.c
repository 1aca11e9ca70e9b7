// SPDX-License-Identifier: MIT
#include "analysis/decomposition/runtime_turns.h"

#include "analysis/timeline/pauses.h"
#include "base/array.h"

struct awake_time {
    const struct host_timeline *host;
    int64_t ns;
};

// A thread that is stopped, or waits for a page, had no time to give anything back.
static void add_awake_period(const struct thread_period *period, void *context)
{
    struct awake_time *awake = context;
    uint32_t pause;
    bool at_once = period->state == THREAD_SLEEPS &&
                   pause_after(awake->host, period->before, &pause) &&
                   (pause == PAUSE_NO_CALL || pause_is_stop(pause));
    if (at_once || (period->state != THREAD_SLEEPS && period->state != THREAD_UNKNOWN))
        awake->ns += period->end_ns - period->begin_ns;
}

static int64_t awake_ns(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                        int64_t end_ns)
{
    struct awake_time awake = {.host = host};
    thread_periods(host, thread, begin_ns, end_ns, add_awake_period, &awake);
    return awake.ns;
}

// The other thread of its process that was awake for longest, and at least for so long; into
// *holder. False: none was.
static bool longest_awake(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                          int64_t end_ns, int64_t least_ns, struct waker *holder)
{
    const struct thread_owner *own = host_timeline_owner(host, thread);
    int64_t most_ns = least_ns - 1;
    uint32_t longest = 0, last = thread;
    for (size_t i = 0; own && i < host->owners.count; i++) {
        const struct thread_owner *other = &host->owners.items[i];
        if (other->process != own->process || other->thread == thread || other->thread == last)
            continue;
        last = other->thread;
        int64_t ns = awake_ns(host, last, begin_ns, end_ns);
        if (ns > most_ns) {
            most_ns = ns;
            longest = last;
        }
    }
    const struct span *span = longest ? thread_span_before(host, longest, end_ns) : NULL;
    if (span)
        *holder = (struct waker){.kind = WAKER_THREAD, .thread = longest, .span = span};
    return span;
}

void interpreter_lock_holder(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                             int64_t end_ns, struct waker *holder)
{
    if (holder->kind != WAKER_THREAD ||
        2 * awake_ns(host, holder->thread, begin_ns, end_ns) < end_ns - begin_ns)
        longest_awake(host, thread, begin_ns, end_ns, 1, holder);
}

// Whether a thread that was awake at a time had slept for a time to pass before.
static bool slept_for_time(const struct host_timeline *host, uint32_t thread, int64_t time_ns)
{
    size_t count;
    uint32_t pause;
    const struct thread_stint *stints = host_timeline_stints(host, thread, &count);
    size_t after = array_bound(0, count, at, stints[at].end_ns < time_ns);
    while (after > 0 && stints[after - 1].left == STINT_PREEMPTED)
        after--;
    return after > 0 && pause_after(host, &stints[after - 1], &pause) && pause_is_for_time(pause);
}

bool runtime_awake_meanwhile(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                             int64_t end_ns, struct waker *other)
{
    return longest_awake(host, thread, begin_ns, end_ns, 1, other);
}

bool go_watches(const struct host_timeline *host, uint32_t thread, int64_t time_ns)
{
    return slept_for_time(host, thread, time_ns);
}

void go_processor_holder(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                         int64_t end_ns, struct waker *holder)
{
    if (holder->kind == WAKER_TIMER ||
        (holder->kind == WAKER_THREAD && go_watches(host, holder->thread, end_ns)))
        longest_awake(host, thread, begin_ns, end_ns, (end_ns - begin_ns + 1) / 2, holder);
}

// Whether the thread slept so, of its sleeps around that time as far as anybody looks.
static bool slept_so(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
                     uint32_t pause)
{
    enum { MOST_SLEEPS = 64 }; // before, and after
    size_t count;
    const struct thread_moment *pauses = thread_moments_of(&host->pauses, thread, &count);
    size_t after = pauses ? thread_moments_before(pauses, count, time_ns) : 0;
    size_t at = after > MOST_SLEEPS ? after - MOST_SLEEPS : 0;
    while (at < count && at < after + MOST_SLEEPS && pauses[at].value != pause)
        at++;
    return at < count && at < after + MOST_SLEEPS;
}

// The same of any thread of its process.
static bool process_slept_so(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
                             uint32_t pause)
{
    const struct thread_owner *own = host_timeline_owner(host, thread);
    bool found = slept_so(host, thread, time_ns, pause);
    for (size_t i = 0; own && i < host->owners.count && !found; i++) {
        const struct thread_owner *other = &host->owners.items[i];
        found = other->process == own->process && other->thread != thread &&
                slept_so(host, other->thread, time_ns, pause);
    }
    return found;
}

bool go_schedules(const struct host_timeline *host, uint32_t thread, int64_t time_ns)
{
    return process_slept_so(host, thread, time_ns, PAUSE_PARKED);
}

bool python_schedules(const struct host_timeline *host, uint32_t thread, int64_t time_ns)
{
    return process_slept_so(host, thread, time_ns, PAUSE_INTERPRETER);
}
