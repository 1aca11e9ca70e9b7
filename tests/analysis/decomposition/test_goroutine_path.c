// SPDX-License-Identifier: MIT
//
// What a goroutine waited for, which Go's scheduler runs on any of its threads: what had the thread
// that replies go on.
#include "tests/analysis/decomposition/two_tiers.h"

// A request that the front's thread reads at 10, and `replier` answers at 1040, in a process of
// Go's.
static void open_go(struct scene *s, uint32_t replier)
{
    static const uint32_t threads[] = {FRONT, WORKER, OTHER};
    open_scene(s);
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(s, replier, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        event(s, -40, EVENT_MEMBER, 0, threads[i])->payload.a = FRONT_PROCESS;
}

static void close_go(struct scene *s, uint32_t replier)
{
    runs(s, 1400, 2, 0, "swapper/2");
    if (replier != FRONT)
        runs(s, 1500, 0, FRONT, "front");
    struct event *parked = event(s, 1510, EVENT_BLOCKED, 0, FRONT);
    parked->payload.a = 202; // futex
    parked->flags = BLOCKED_PARKED;
    runs(s, 1510, 0, BYSTANDER, "bystander");
    build(s, 1, 10, 1040, 0);
}

// The front's thread turns to wait for sockets.
static void waits_for_sockets(struct scene *s, int us)
{
    struct event *leaves = event(s, us, EVENT_SWITCH, 0, BYSTANDER);
    leaves->flags = SWITCH_WAITS;
    strcpy(leaves->payload.text, "bystander");
}

// Somebody else's request wakes it.
static void woken_by_a_request(struct scene *s, int us)
{
    event(s, us, EVENT_SOFTIRQ_ENTRY, 2, 3);
    event(s, us + 1, EVENT_HANDOFF, 2, OTHERS_SIDE);
    event(s, us + 2, EVENT_WAKING, 2, FRONT);
    event(s, us + 3, EVENT_SOFTIRQ_EXIT, 2, 3);
}

// The worker has been in fsync since before the request came, with a lock on what it needs.
static void syncs_until(struct scene *s, int us)
{
    runs(s, -10, 2, WORKER, "worker");
    event(s, -5, EVENT_BLOCKED, 2, WORKER)->payload.a = 74; // fsync
    runs(s, -5, 2, 0, "swapper/2");
    event(s, us, EVENT_WAKING, 2, WORKER);
    runs(s, us + 1, 2, WORKER, "worker");
}

// Its goroutine gives the lock back, and the thread runs the next one that was waiting for it,
// which replies: that was no free worker's lack.
static void test_holder_replies(void **state)
{
    (void)state;
    struct scene s;
    open_go(&s, WORKER);
    syncs_until(&s, 1000);
    waits_for_sockets(&s, 24);
    close_go(&s, WORKER);
    expect(&s, "waiting for worker (another goroutine), blocked in fsync", 985, 995);
    expect(&s, "waiting for a free worker", 0, 0);
    close_scene(&s);
}

// It wakes the thread that had read the request, and that others' requests have woken before: none
// of these is what was waited for.
static void test_holder_wakes(void **state)
{
    (void)state;
    struct scene s;
    open_go(&s, FRONT);
    syncs_until(&s, 1000);
    waits_for_sockets(&s, 24);
    woken_by_a_request(&s, 500);
    runs(&s, 504, 0, FRONT, "front");
    call(&s, FRONT, CALL_RECEIVE, 505, 506, OTHERS_SIDE);
    waits_for_sockets(&s, 520);
    event(&s, 1030, EVENT_WAKING, 2, FRONT)->payload.b = WORKER;
    runs(&s, 1031, 0, FRONT, "front");
    close_go(&s, FRONT);
    expect(&s, "waiting for front (another goroutine), blocked in fsync", 985, 995);
    expect(&s, "waiting for a packet", 0, 0);
    close_scene(&s);
}

// A request wakes the front's thread, which gets no core for long. Meanwhile the process's timer
// wakes a thread that is parked until then: that is what the goroutine waited for. Without it
// nobody knows.
static void test_timer_meanwhile(void **state)
{
    (void)state;
    for (int timer = 0; timer <= 1; timer++) {
        struct scene s;
        open_go(&s, FRONT);
        if (timer) {
            runs(&s, -10, 2, OTHER, "watcher");
            struct event *parked = event(&s, -5, EVENT_BLOCKED, 2, OTHER);
            parked->payload.a = 202; // futex
            parked->flags = BLOCKED_PARKED;
            runs(&s, -5, 2, 0, "swapper/2");
        }
        waits_for_sockets(&s, 24);
        woken_by_a_request(&s, 500);
        if (timer) {
            event(&s, 798, EVENT_VECTOR_ENTRY, 2, VECTOR_LOCAL_TIMER);
            event(&s, 799, EVENT_WAKING, 2, OTHER);
            event(&s, 800, EVENT_VECTOR_EXIT, 2, VECTOR_LOCAL_TIMER);
            runs(&s, 801, 2, OTHER, "watcher");
            runs(&s, 810, 2, 0, "swapper/2");
        }
        runs(&s, 1031, 0, FRONT, "front");
        close_go(&s, FRONT);
        expect(&s, "waiting for a timer", timer ? 780 : 0, timer ? 795 : 0);
        expect(&s, "unknown wait", timer ? 0 : 480, timer ? 0 : 495);
        expect(&s, "bystander", timer ? 225 : 520, timer ? 235 : 535);
        close_scene(&s);
    }
}

// A program that the server has started ends, and nobody saw it come to its core: it had the
// goroutine wait all the same.
static void test_child_that_was_not_seen(void **state)
{
    (void)state;
    struct scene s;
    open_go(&s, FRONT);
    event(&s, -30, EVENT_MEMBER, 2, BACKEND)->payload.a = BACKEND_PROCESS;
    s.events.items[s.events.count - 1].payload.b = FRONT_PROCESS;
    runs(&s, -20, 2, BACKEND, "sleep");
    event(&s, -10, EVENT_BLOCKED, 2, BACKEND)->payload.a = 230; // clock_nanosleep
    runs(&s, -10, 2, 0, "swapper/2");
    waits_for_sockets(&s, 24);
    event(&s, 1030, EVENT_WAKING, 2, FRONT)->payload.b = BACKEND;
    runs(&s, 1031, 0, FRONT, "front");
    close_go(&s, FRONT);
    expect(&s, "waiting for sleep, sleeping (timer)", 1010, 1025);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holder_replies),
        cmocka_unit_test(test_holder_wakes),
        cmocka_unit_test(test_timer_meanwhile),
        cmocka_unit_test(test_child_that_was_not_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
