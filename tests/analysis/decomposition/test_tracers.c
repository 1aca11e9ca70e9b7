// SPDX-License-Identifier: MIT
//
// A thread that somebody traces: many short stops, and what each of them costs beside.
#include "tests/analysis/decomposition/two_tiers.h"

enum { TRACER = 300, STOPS = 20, EVERY_US = 50 };

static void is_stopped(struct scene *s, int us)
{
    struct event *blocked = event(s, us, EVENT_BLOCKED, 0, FRONT);
    blocked->payload.a = BLOCKED_NO_CALL;
    blocked->payload.b = BLOCKED_TRACED;
}

// The front's thread has a request from 10 to 1040 and is stopped twenty times, each time for 20 us
// until its tracer lets it go on, and 10 more until it does.
static void build_traced(struct scene *s, bool same_core)
{
    open_scene(s);
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    if (!same_core)
        runs(s, 12, 1, TRACER, "strace");
    for (int at = 20; at < 20 + STOPS * EVERY_US; at += EVERY_US) {
        is_stopped(s, at);
        runs(s, at, 0, same_core ? TRACER : 0, same_core ? "strace" : "swapper/0");
        event(s, at + 20, EVENT_WAKING, same_core ? 0 : 1, FRONT)->payload.b = TRACER;
        runs(s, at + 30, 0, FRONT, "front");
    }
    runs(s, 1400, 1, 0, "swapper/1");
    build(s, 1, 10, 1040, 0);
}

// All of it is one cause, whether the tracer shares the thread's core or has one of its own.
static void test_many_stops_are_one_cause(void **state)
{
    (void)state;
    for (int same_core = 0; same_core <= 1; same_core++) {
        struct scene s;
        build_traced(&s, same_core);
        expect(&s, "stopped by a tracer (strace)", 30 * STOPS - 5, 30 * STOPS + 5);
        expect(&s, "strace", 0, 0);
        expect(&s, "wake-up latency", 0, 0);
        close_scene(&s);
    }
}

// What has the core and is not the tracer is told by its own name.
static void test_another_has_the_core(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    runs(&s, 12, 1, TRACER, "strace");
    is_stopped(&s, 20);
    runs(&s, 20, 0, BYSTANDER, "bystander");
    event(&s, 120, EVENT_WAKING, 1, FRONT)->payload.b = TRACER;
    runs(&s, 500, 0, FRONT, "front");
    runs(&s, 1400, 1, 0, "swapper/1");
    build(&s, 1, 10, 1040, 0);
    expect(&s, "stopped by a tracer (strace)", 99, 101);
    expect(&s, "bystander", 379, 381);
    close_scene(&s);
}

// The tracer has seen a call and cannot write it down: whoever reads that takes its time.
static void test_tracer_cannot_write(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s);
    call(&s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(&s, FRONT, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    is_stopped(&s, 20);
    runs(&s, 20, 0, 0, "swapper/0");
    runs(&s, 22, 1, TRACER, "strace");
    event(&s, 40, EVENT_FILE, 1, TRACER)->flags = FILE_PIPE;
    event(&s, 40, EVENT_BLOCKED, 1, TRACER)->payload.a = 1; // write
    runs(&s, 40, 1, 0, "swapper/1");
    event(&s, 900, EVENT_WAKING, 2, TRACER);
    runs(&s, 901, 1, TRACER, "strace");
    event(&s, 910, EVENT_WAKING, 1, FRONT)->payload.b = TRACER;
    runs(&s, 912, 0, FRONT, "front");
    runs(&s, 1400, 1, 0, "swapper/1");
    build(&s, 1, 10, 1040, 0);
    expect(&s, "stopped by a tracer (strace), blocked in write to a pipe", 855, 865);
    expect(&s, "stopped by a tracer (strace)", 25, 35);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_stops_are_one_cause),
        cmocka_unit_test(test_another_has_the_core),
        cmocka_unit_test(test_tracer_cannot_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
