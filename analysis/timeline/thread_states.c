// SPDX-License-Identifier: MIT
#include "analysis/timeline/thread_states.h"

#include "base/array.h"
#include "profiler/bpf/event_log.h"

// --- periods -------------------------------------------------------------------------------------

// A thread on its way to sleep may be woken on another core just before its switch is recorded.
enum { EARLY_WAKING_NS = 20000 };

struct walk {
    int64_t begin_ns, end_ns;
    const struct thread_stint *before, *next;
    const struct waking *wakings;
    size_t waking_count;
    thread_period_visitor *each;
    void *context;
};

static void tell_period(const struct walk *walk, enum thread_state state, int64_t begin_ns,
                        int64_t end_ns, const struct waking *waking)
{
    struct thread_period period = {.state = state,
                                   .begin_ns =
                                       begin_ns > walk->begin_ns ? begin_ns : walk->begin_ns,
                                   .end_ns = end_ns < walk->end_ns ? end_ns : walk->end_ns,
                                   .before = walk->before,
                                   .next = walk->next,
                                   .waking = waking};
    if (period.end_ns > period.begin_ns)
        walk->each(&period, walk->context);
}

static size_t wakings_before(const struct walk *walk, int64_t time_ns)
{
    return array_bound(0, walk->waking_count, at, walk->wakings[at].time_ns < time_ns);
}

// From the last waking on the thread was ready. A thread that was woken more than once in between
// ran and slept again, and nobody saw it.
static void tell_ready(const struct walk *walk, int64_t since_ns, int64_t resumed_ns,
                       const struct waking *last)
{
    bool throttled = last->flags & WAKING_THROTTLED;
    tell_period(walk, THREAD_UNKNOWN, since_ns, last->time_ns, NULL);
    tell_period(walk, throttled ? THREAD_THROTTLED : THREAD_READY,
                last->time_ns > since_ns ? last->time_ns : since_ns, resumed_ns, NULL);
}

static void tell_sleep(const struct walk *walk, int64_t left_ns, int64_t resumed_ns, size_t first,
                       size_t after)
{
    const struct waking *wakings = walk->wakings;
    if (first == after && first > 0 && wakings[first - 1].time_ns > walk->before->begin_ns &&
        wakings[first - 1].time_ns > left_ns - EARLY_WAKING_NS)
        first--;
    if (first == after) {
        tell_period(walk, THREAD_SLEEPS, left_ns, resumed_ns, NULL);
        return;
    }
    int64_t woken_ns = wakings[first].time_ns > left_ns ? wakings[first].time_ns : left_ns;
    tell_period(walk, THREAD_SLEEPS, left_ns, woken_ns, &wakings[first]);
    tell_ready(walk, woken_ns, resumed_ns, &wakings[after - 1]);
}

// The time between two stints.
static void tell_gap(const struct walk *walk)
{
    int64_t left = walk->before ? walk->before->end_ns : INT64_MIN;
    int64_t resumed = walk->next ? walk->next->begin_ns : INT64_MAX;
    size_t first = wakings_before(walk, left), after = wakings_before(walk, resumed);
    enum stint_end how = walk->before ? (enum stint_end)walk->before->left : STINT_CUT;
    if (how == STINT_SLEEPS || how == STINT_WAITS)
        tell_sleep(walk, left, resumed, first, after);
    else if (after > first)
        tell_ready(walk, left, resumed, &walk->wakings[after - 1]);
    else
        tell_period(walk,
                    how == STINT_PREEMPTED   ? THREAD_READY
                    : how == STINT_THROTTLED ? THREAD_THROTTLED
                                             : THREAD_UNKNOWN,
                    left, resumed, NULL);
}

void thread_periods(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                    int64_t end_ns, thread_period_visitor *each, void *context)
{
    struct walk walk = {.begin_ns = begin_ns, .end_ns = end_ns, .each = each, .context = context};
    size_t count;
    const struct thread_stint *stints = host_timeline_stints(host, thread, &count);
    walk.wakings = host_timeline_wakings(host, thread, &walk.waking_count);
    size_t at = array_bound(0, count, i, stints[i].end_ns <= begin_ns);
    for (; walk.begin_ns < end_ns; at++) {
        walk.before = at > 0 ? &stints[at - 1] : NULL;
        walk.next = at < count ? &stints[at] : NULL;
        if (!walk.next || walk.next->begin_ns > walk.begin_ns)
            tell_gap(&walk);
        if (!walk.next || walk.next->begin_ns >= end_ns)
            return;
        tell_period(&walk, THREAD_RUNS, walk.next->begin_ns, walk.next->end_ns, NULL);
        walk.begin_ns = walk.next->end_ns;
    }
}

struct first_period {
    struct thread_period period;
    bool taken;
};

static void take_first(const struct thread_period *period, void *context)
{
    struct first_period *first = context;
    if (!first->taken)
        *first = (struct first_period){.period = *period, .taken = true};
}

static void look_for_unknown(const struct thread_period *period, void *context)
{
    bool *known = context;
    *known &= period->state != THREAD_UNKNOWN;
}

bool thread_is_known(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                     int64_t end_ns)
{
    bool known = true;
    thread_periods(host, thread, begin_ns, end_ns, look_for_unknown, &known);
    return known;
}

struct thread_period thread_period_at(const struct host_timeline *host, uint32_t thread,
                                      int64_t begin_ns, int64_t end_ns)
{
    struct first_period first = {.period = {.begin_ns = begin_ns, .end_ns = end_ns}};
    struct walk walk = {
        .begin_ns = begin_ns, .end_ns = end_ns, .each = take_first, .context = &first};
    size_t count;
    const struct thread_stint *stints = host_timeline_stints(host, thread, &count);
    walk.wakings = host_timeline_wakings(host, thread, &walk.waking_count);
    size_t at = array_bound(0, count, i, stints[i].end_ns <= begin_ns);
    walk.before = at > 0 ? &stints[at - 1] : NULL;
    walk.next = at < count ? &stints[at] : NULL;
    if (!walk.next || walk.next->begin_ns > begin_ns)
        tell_gap(&walk);
    if (walk.next)
        tell_period(&walk, THREAD_RUNS, walk.next->begin_ns, walk.next->end_ns, NULL);
    return first.period;
}

const char *thread_quota_group(const struct host_timeline *host, uint32_t thread,
                               const struct thread_stint *before, int64_t end_ns)
{
    size_t count = 0;
    const struct thread_moment *quotas = thread_moments_of(&host->quotas, thread, &count);
    size_t after = quotas ? thread_moments_before(quotas, count, end_ns) : 0;
    return after > 0 && before && quotas[after - 1].time_ns > before->begin_ns
               ? host->names.items[quotas[after - 1].value]
               : NULL;
}

// --- wakers --------------------------------------------------------------------------------------

enum { SOFTIRQ_TIMER = 1, SOFTIRQ_NET_RX = 3, SOFTIRQ_BLOCK = 4, SOFTIRQ_HRTIMER = 8 };

static enum waker_kind kind_of_softirq(uint32_t vector)
{
    switch (vector) {
    case SOFTIRQ_TIMER:
    case SOFTIRQ_HRTIMER:
        return WAKER_TIMER;
    case SOFTIRQ_NET_RX:
        return WAKER_PACKET;
    case SOFTIRQ_BLOCK:
        return WAKER_BLOCK;
    default:
        return WAKER_KERNEL;
    }
}

static enum waker_kind kind_of_context(const struct span *context)
{
    switch (context->kind) {
    case SPAN_TASK:
        return WAKER_THREAD;
    case SPAN_SOFTIRQ:
        return kind_of_softirq(context->id);
    case SPAN_IRQ:
        return WAKER_DEVICE;
    case SPAN_VECTOR:
        return context->id == VECTOR_LOCAL_TIMER ? WAKER_TIMER : WAKER_KERNEL;
    case SPAN_STOLEN:
    case SPAN_IDLE:
    case SPAN_UNKNOWN:
    case SPAN_FUNCTION:
        break;
    }
    return WAKER_UNKNOWN;
}

static void take_context(const struct span *innermost, int64_t begin_ns, int64_t end_ns,
                         void *context)
{
    (void)begin_ns;
    (void)end_ns;
    *(const struct span **)context = innermost;
}

struct waker waker_of(const struct host_timeline *host, const struct waking *waking)
{
    struct waker waker = {.thread = waking->waker};
    const struct core_timeline *core = host_timeline_core(host, waking->from);
    const struct span *context = NULL;
    if (core)
        core_timeline_pieces(core, waking->time_ns, waking->time_ns + 1, take_context, &context);
    waker.kind = context ? kind_of_context(context) : WAKER_UNKNOWN;
    if (waker.kind != WAKER_UNKNOWN)
        waker.span = context;
    if (waker.kind == WAKER_THREAD && context->id != waking->waker)
        waker = (struct waker){.thread = waking->waker}; // a switch is missing
    return waker;
}

static void look_for_interrupt(const struct span *innermost, int64_t begin_ns, int64_t end_ns,
                               void *context)
{
    bool *found = context;
    (void)begin_ns;
    (void)end_ns;
    *found |= !innermost || innermost->kind == SPAN_IRQ || innermost->kind == SPAN_VECTOR ||
              innermost->kind == SPAN_UNKNOWN;
}

uint32_t waking_sender(const struct host_timeline *host, const struct waking *waking)
{
    enum { JUST_NS = 3000 }; // a softirq follows its interrupt at once
    const struct waker waker = waker_of(host, waking);
    const struct core_timeline *core = host_timeline_core(host, waking->from);
    bool interrupted = false;
    if (waker.kind != WAKER_PACKET || !core)
        return 0;
    core_timeline_pieces(core, waker.span->begin_ns - JUST_NS, waker.span->begin_ns,
                         look_for_interrupt, &interrupted);
    return interrupted ? 0 : waking->waker;
}

static void take_task(const struct span *const *open, unsigned depth, int64_t begin_ns,
                      int64_t end_ns, void *context)
{
    (void)begin_ns;
    (void)end_ns;
    *(const struct span **)context = depth ? open[0] : NULL;
}

const struct span *thread_span_before(const struct host_timeline *host, uint32_t thread,
                                      int64_t end_ns)
{
    size_t count;
    const struct thread_stint *stints = host_timeline_stints(host, thread, &count);
    size_t after = array_bound(0, count, at, stints[at].begin_ns < end_ns);
    const struct thread_stint *stint = after > 0 ? &stints[after - 1] : stints;
    const struct core_timeline *core = stint ? host_timeline_core(host, stint->core) : NULL;
    const struct span *task = NULL;
    if (core)
        core_timeline_stacks(core, stint->begin_ns, stint->begin_ns + 1, take_task, &task);
    return task;
}
