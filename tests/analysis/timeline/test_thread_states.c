// SPDX-License-Identifier: MIT
//
// The state machine of a thread between its stints, and what woke it: from events of one core, in
// which the thread 7 runs, is preempted, sleeps, and is woken.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/timeline/pauses.h"
#include "analysis/timeline/thread_states.h"
#include "analysis/timeline/timeline.h"
#include "tests/analysis/diagnosis/scenario.h"

enum { THREAD = 7, OTHER = 8 };

struct told {
    enum thread_state state[16];
    int64_t end_ns[16];
    const struct waking *waking[16];
    unsigned count;
};

static struct scenario events;
static struct host_timeline host;

static void begins(void)
{
    events = (struct scenario){0};
    host = (struct host_timeline){0};
}

static void comes(int64_t at, uint32_t thread, uint8_t flags)
{
    char comm[16] = "thread";
    scenario_switch(&events, at, 0, thread, comm);
    events.events.items[events.events.count - 1].flags = flags;
}

static void woken(int64_t at, uint32_t by, uint8_t flags)
{
    struct event *event = scenario_event(&events, at, EVENT_WAKING, 0, THREAD);
    event->payload.b = by;
    event->flags = flags;
}

static void collect(const struct thread_period *period, void *context)
{
    struct told *told = context;
    assert_true(told->count < 16);
    assert_true(period->end_ns > period->begin_ns);
    if (told->count)
        assert_int_equal(period->begin_ns, told->end_ns[told->count - 1]);
    told->state[told->count] = period->state;
    told->waking[told->count] = period->waking;
    told->end_ns[told->count++] = period->end_ns;
}

static struct told ends(int64_t from, int64_t to)
{
    struct told told = {0};
    struct time_source clock = scenario_clock();
    struct error err = {0};
    assert_int_equal(
        host_timeline_build(events.events.items, events.events.count, &clock, &host, &err), 0);
    thread_periods(&host, THREAD, from, to, collect, &told);
    assert_true(told.count > 0 && told.end_ns[told.count - 1] == to);
    return told;
}

static void release(void)
{
    host_timeline_free(&host);
    array_free(&events.events);
}

#define assert_states(told, ...)                                                                   \
    do {                                                                                           \
        static const enum thread_state wanted_[] = {__VA_ARGS__};                                  \
        assert_int_equal((told).count, sizeof wanted_ / sizeof *wanted_);                          \
        for (unsigned i_ = 0; i_ < (told).count; i_++)                                             \
            assert_int_equal((told).state[i_], wanted_[i_]);                                       \
    } while (0)

static void sleeps_until_it_is_woken(void **state)
{
    (void)state;
    begins();
    comes(1000, THREAD, 0);
    comes(2000, 0, 0); // it went to sleep
    comes(3000, OTHER, 0);
    woken(4000, OTHER, 0);
    comes(5000, THREAD, SWITCH_PREEMPTED);
    comes(6000, OTHER, SWITCH_PREEMPTED);
    comes(7000, THREAD, 0);
    comes(8000, 0, SWITCH_WAITS);
    struct told told = ends(1500, 9000);
    assert_states(told, THREAD_RUNS, THREAD_SLEEPS, THREAD_READY, THREAD_RUNS, THREAD_READY,
                  THREAD_RUNS, THREAD_SLEEPS);
    assert_int_equal(told.end_ns[1], 4000);
    struct waker waker = waker_of(&host, told.waking[1]);
    assert_int_equal(waker.kind, WAKER_THREAD);
    assert_int_equal(waker.thread, OTHER);
    assert_null(told.waking[6]);
    release();
}

// The switch by which it came back was lost, not the one by which it left again: the second sleep
// is not the first.
static void sleeps_anew_though_nobody_saw_it_run(void **state)
{
    (void)state;
    begins();
    comes(1000, THREAD, 0);
    comes(2000, OTHER, SWITCH_WAITS);
    woken(3000, OTHER, 0);
    scenario_event(&events, 4000, EVENT_UNSEEN, 0, THREAD);
    scenario_event(&events, 4010, EVENT_BLOCKED, 0, THREAD)->payload.a = 75; // fdatasync
    comes(4020, OTHER, SWITCH_UNSEEN);
    woken(5000, OTHER, 0);
    comes(6000, THREAD, SWITCH_PREEMPTED);
    comes(7000, 0, 0);
    struct told told = ends(1500, 7000);
    assert_states(told, THREAD_RUNS, THREAD_SLEEPS, THREAD_READY, THREAD_RUNS, THREAD_SLEEPS,
                  THREAD_READY, THREAD_RUNS);
    assert_int_equal(told.end_ns[1], 3000);
    assert_int_equal(told.end_ns[2], 4000);
    assert_int_equal(told.end_ns[4], 5000);
    size_t count;
    uint32_t pause;
    const struct thread_stint *stints = host_timeline_stints(&host, THREAD, &count);
    assert_int_equal(count, 3);
    assert_int_equal(stints[0].left, STINT_WAITS);
    assert_int_equal(stints[1].left, STINT_SLEEPS);
    assert_true(pause_after(&host, &stints[1], &pause));
    assert_int_equal(pause, 75);
    release();
}

static void is_woken_on_its_way_to_sleep(void **state)
{
    (void)state;
    begins();
    comes(1000000, THREAD, 0);
    woken(1999000, 0, 0); // by another core, which had seen it leave
    comes(2000000, 0, 0);
    comes(2005000, THREAD, 0);
    comes(2006000, 0, 0);
    struct told told = ends(1500000, 2006000);
    assert_states(told, THREAD_RUNS, THREAD_READY, THREAD_RUNS);
    release();
}

static void is_held_back_by_a_quota(void **state)
{
    (void)state;
    begins();
    comes(1000, THREAD, 0);
    comes(2000, OTHER, SWITCH_PREEMPTED | SWITCH_THROTTLED);
    comes(9000, THREAD, SWITCH_PREEMPTED);
    comes(10000, 0, 0);
    woken(11000, 0, WAKING_THROTTLED);
    comes(15000, THREAD, 0);
    comes(16000, 0, SWITCH_EXITED);
    struct told told = ends(1500, 20000);
    assert_states(told, THREAD_RUNS, THREAD_THROTTLED, THREAD_RUNS, THREAD_SLEEPS, THREAD_THROTTLED,
                  THREAD_RUNS, THREAD_UNKNOWN);
    release();
}

static void what_nobody_saw_is_unknown(void **state)
{
    (void)state;
    begins();
    woken(1000, 0, 0); // before it was ever seen to run
    comes(2000, THREAD, 0);
    comes(3000, 0, 0);
    woken(4000, 0, 0);
    woken(6000, 0, 0); // so it ran and slept in between
    comes(7000, THREAD, 0);
    comes(8000, 0, 0);
    struct told told = ends(500, 9000);
    assert_states(told, THREAD_UNKNOWN, THREAD_READY, THREAD_RUNS, THREAD_SLEEPS, THREAD_UNKNOWN,
                  THREAD_READY, THREAD_RUNS, THREAD_SLEEPS);
    release();
    begins();
    comes(1000, OTHER, 0);
    struct told never = ends(500, 9000);
    assert_states(never, THREAD_UNKNOWN);
    release();
}

// The switch by which it left a core was lost: it is on no two at once, and no time is told twice.
static void is_on_one_core_at_a_time(void **state)
{
    char thread[16] = "thread", idle[16] = "swapper/1";
    (void)state;
    begins();
    comes(1000, THREAD, 0);
    scenario_switch(&events, 3000, 1, THREAD, thread);
    scenario_switch(&events, 4000, 1, 0, idle);
    scenario_switch(&events, 8500, 1, OTHER, thread);
    comes(8000, OTHER, SWITCH_PREEMPTED);
    struct told told = ends(1500, 9000);
    assert_states(told, THREAD_RUNS, THREAD_RUNS, THREAD_SLEEPS);
    assert_int_equal(told.end_ns[0], 3000);
    assert_true(host.unpaired > 0);
    release();
}

static void wakers_are_told_by_what_the_core_was_in(void **state)
{
    static const struct {
        uint8_t entry;
        uint32_t id;
        enum waker_kind kind;
    } cases[] = {
        {EVENT_SOFTIRQ_ENTRY, 3, WAKER_PACKET},
        {EVENT_SOFTIRQ_ENTRY, 8, WAKER_TIMER},
        {EVENT_SOFTIRQ_ENTRY, 4, WAKER_BLOCK},
        {EVENT_SOFTIRQ_ENTRY, 9, WAKER_KERNEL},
        {EVENT_IRQ_ENTRY, 25, WAKER_DEVICE},
        {EVENT_VECTOR_ENTRY, VECTOR_LOCAL_TIMER, WAKER_TIMER},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begins();
        comes(1000, THREAD, 0);
        comes(2000, OTHER, 0);
        scenario_event(&events, 3000, cases[i].entry, 0, cases[i].id);
        woken(3500, OTHER, 0);
        scenario_event(&events, 4000, (uint8_t)(cases[i].entry + 1), 0, cases[i].id);
        comes(5000, THREAD, SWITCH_PREEMPTED);
        struct told told = ends(1500, 5000);
        assert_states(told, THREAD_RUNS, THREAD_SLEEPS, THREAD_READY);
        assert_int_equal(waker_of(&host, told.waking[1]).kind, cases[i].kind);
        release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleeps_until_it_is_woken),
        cmocka_unit_test(sleeps_anew_though_nobody_saw_it_run),
        cmocka_unit_test(is_woken_on_its_way_to_sleep),
        cmocka_unit_test(is_held_back_by_a_quota),
        cmocka_unit_test(what_nobody_saw_is_unknown),
        cmocka_unit_test(is_on_one_core_at_a_time),
        cmocka_unit_test(wakers_are_told_by_what_the_core_was_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
