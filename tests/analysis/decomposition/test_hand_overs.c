// SPDX-License-Identifier: MIT
//
// Requests that one thread reads and another one answers, with a third in between.
#include "tests/analysis/decomposition/two_tiers.h"

static void waits_for_word(struct scene *s, int us, uint16_t core, uint32_t thread)
{
    struct event *blocked = event(s, us, EVENT_BLOCKED, core, thread);
    blocked->payload.a = 202; // futex
    blocked->flags = BLOCKED_CONDITION;
    runs(s, us, core, core ? 0 : BYSTANDER, core ? "swapper" : "bystander");
}

static void is_told(struct scene *s, int us, uint16_t core, uint32_t thread, const char *name,
                    uint32_t by, uint16_t by_core)
{
    event(s, us, EVENT_WAKING, by_core, thread)->payload.b = by;
    runs(s, us + 1, core, thread, name);
}

static void timer_ends_wait(struct scene *s, int us, uint16_t core, uint32_t thread,
                            const char *name)
{
    event(s, us - 1, EVENT_VECTOR_ENTRY, core, VECTOR_LOCAL_TIMER);
    event(s, us, EVENT_WAKING, core, thread);
    event(s, us + 1, EVENT_VECTOR_EXIT, core, VECTOR_LOCAL_TIMER);
    runs(s, us + 2, core, thread, name);
}

// The front's thread reads a request at 10, has the scheduler put it off until a time, and rests;
// it reads another one at 300. The worker answers others' until `busy`, and then awaits work.
static void open_hand_over(struct scene *s, int busy)
{
    static const uint32_t threads[] = {FRONT, WORKER, OTHER};
    open_scene(s);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        event(s, -40, EVENT_MEMBER, 0, threads[i])->payload.a = FRONT_PROCESS;
    call(s, FRONT, CALL_RECEIVE, 9, 10, CLIENT_SIDE);
    call(s, FRONT, CALL_RECEIVE, 300, 301, OTHERS_SIDE);
    call(s, WORKER, CALL_SEND, busy - 2, busy, OTHERS_SIDE);
    call(s, WORKER, CALL_SEND, 1040, 1042, CLIENT_SIDE);
    runs(s, -30, 1, WORKER, "worker");
    runs(s, -30, 2, OTHER, "scheduler");
    waits_for_word(s, 15, 2, OTHER);
    waits_for_word(s, 20, 0, FRONT);
    is_told(s, 290, 0, FRONT, "front", BYSTANDER, 0);
    waits_for_word(s, 310, 0, FRONT);
}

static void close_hand_over(struct scene *s)
{
    runs(s, 1400, 1, 0, "swapper/1");
    runs(s, 1400, 2, 0, "swapper/2");
    build(s, 1, 10, 1040, 0);
}

// Who told the worker at last had it: the scheduler, which had slept until its time had come.
static void test_put_off_by_a_timer(void **state)
{
    (void)state;
    struct scene s;
    open_hand_over(&s, 500);
    waits_for_word(&s, 510, 1, WORKER);
    timer_ends_wait(&s, 1020, 2, OTHER, "scheduler");
    is_told(&s, 1025, 1, WORKER, "worker", OTHER, 2);
    close_hand_over(&s);
    expect(&s, "condition wait (futex): scheduler, condition wait (futex), timed out", 995, 1002);
    expect(&s, "waiting for a free worker", 0, 0);
    close_scene(&s);
}

// Afterwards the scheduler awaits something else for a time, until it is told of that: it had not
// waited for that before, as it had something to say.
static void test_its_time_had_come(void **state)
{
    (void)state;
    struct scene s;
    open_hand_over(&s, 500);
    waits_for_word(&s, 510, 1, WORKER);
    timer_ends_wait(&s, 1020, 2, OTHER, "scheduler");
    is_told(&s, 1025, 1, WORKER, "worker", OTHER, 2);
    waits_for_word(&s, 1028, 2, OTHER);
    is_told(&s, 1090, 2, OTHER, "scheduler", BYSTANDER, 0);
    close_hand_over(&s);
    expect(&s, "condition wait (futex): scheduler, condition wait (futex), timed out", 995, 1002);
    close_scene(&s);
}

// A worker that answers others' to the end, and then this one, was not free; nor is one that the
// thread that had read it tells.
static void test_in_the_queue(void **state)
{
    (void)state;
    for (int told = 0; told <= 1; told++) {
        struct scene s;
        open_hand_over(&s, told ? 500 : 1000);
        if (told) {
            waits_for_word(&s, 510, 1, WORKER);
            is_told(&s, 1019, 0, FRONT, "front", BYSTANDER, 0);
            is_told(&s, 1025, 1, WORKER, "worker", FRONT, 0);
        }
        close_hand_over(&s);
        expect(&s, "waiting for a free worker", told ? 195 : 695, told ? 205 : 705);
        close_scene(&s);
    }
}

// One thread finds out which connections have something, and another one reads from them: the
// message's lay in its queue while that one slept in the midst of another's request. It comes in
// two parts. `waits`: the one that reads found out by itself, and was told of both.
// It sleeps in nanosleep, or as Java does in a condition wait that times out.
static void its_connection_waits(uint32_t call_number, uint8_t flags, const char *sleep)
{
    char queued[CAUSE_NAME_BYTES];
    snprintf(queued, sizeof queued, "waiting for a free worker, %s", sleep);
    for (int waits = 0; waits <= 1; waits++) {
        struct scene s;
        open_scene(&s);
        event(&s, -40, EVENT_MEMBER, 0, FRONT)->payload.a = FRONT_PROCESS;
        event(&s, -40, EVENT_MEMBER, 0, OTHER)->payload.a = FRONT_PROCESS;
        call(&s, OTHER, CALL_WAIT, -100, 12, 0);
        if (waits)
            call(&s, FRONT, CALL_WAIT, -32, -31, 0);
        call(&s, FRONT, CALL_RECEIVE, -30, -29, OTHERS_SIDE);
        call(&s, FRONT, CALL_SEND, 750, 760, OTHERS_SIDE);
        for (int part = 0; part <= 1; part++) {
            call(&s, FRONT, CALL_RECEIVE, 765 + 5 * part, 766 + 5 * part, CLIENT_SIDE);
            s.calls.items[s.calls.count - 1].offset = 100 + 10 * (uint64_t)part;
        }
        call(&s, FRONT, CALL_SEND, 800, 802, CLIENT_SIDE);
        struct event *blocked = event(&s, 100, EVENT_BLOCKED, 0, FRONT);
        blocked->payload.a = call_number;
        blocked->flags = flags;
        runs(&s, 100, 0, BYSTANDER, "bystander");
        timer_ends_wait(&s, 700, 0, FRONT, "front");
        build(&s, 5, 771, 800, 0);
        expect(&s, queued, waits ? 0 : 595, waits ? 0 : 602);
        expect(&s, "waiting for a free worker", waits ? 0 : 140, waits ? 0 : 150);
        expect(&s, sleep, waits ? 595 : 0, waits ? 602 : 0);
        close_scene(&s);
    }
}

static void test_its_connection_in_the_queue(void **state)
{
    (void)state;
    its_connection_waits(35, 0, "sleeping (timer)");
    its_connection_waits(202, BLOCKED_CONDITION, "condition wait (futex), timed out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_off_by_a_timer),
        cmocka_unit_test(test_its_time_had_come),
        cmocka_unit_test(test_in_the_queue),
        cmocka_unit_test(test_its_connection_in_the_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
