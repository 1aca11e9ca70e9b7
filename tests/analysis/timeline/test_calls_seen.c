// SPDX-License-Identifier: MIT
//
// In which system calls threads run, by what the timer and their sleeps show of them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "analysis/timeline/detours.h"
#include "analysis/timeline/timeline.h"
#include "tests/analysis/diagnosis/scenario.h"

enum {
    READ = 0,
    WRITE = 1,
    MMAP = 9,
    SENDTO = 44,
    FSYNC = 74,
    UNLINK = 87,
    FUTEX = 202,
    CLOCK_GETTIME = 228,
    EPOLL_WAIT = 232
};
enum { FIRST_NS = 1000000, SECOND_NS = 5000000, BETWEEN_NS = 3000000, OTHER_THREAD = 900 };

struct seen {
    struct scenario scenario;
    struct host_timeline host;
};

// instance 0: in no call
static uint64_t call_of(uint64_t call, uint64_t instance)
{
    return instance ? call | instance << 32 : 0;
}

static void tick(struct seen *seen, int64_t at, uint32_t thread, uint64_t call, uint64_t instance)
{
    struct scenario *s = &seen->scenario;
    struct event *entry =
        scenario_event(s, SCENARIO_BEGIN_NS + at, EVENT_VECTOR_ENTRY, 0, VECTOR_LOCAL_TIMER);
    entry->payload.a = call_of(call, instance);
    entry->payload.b = thread;
    scenario_event(s, SCENARIO_BEGIN_NS + at + 100, EVENT_VECTOR_EXIT, 0, VECTOR_LOCAL_TIMER);
}

// The thread sleeps for a millisecond: in a call, or (call 0 of instance 0) for sockets.
static void nap(struct seen *seen, int64_t at, uint64_t call, uint64_t instance)
{
    struct scenario *s = &seen->scenario;
    const int64_t time = SCENARIO_BEGIN_NS + at;
    if (instance)
        scenario_event(s, time, EVENT_BLOCKED, 0, SERVER_THREAD)->payload.a =
            call_of(call, instance);
    scenario_switch(s, time, 0, 0, "swapper/0");
    if (!instance)
        s->events.items[s->events.count - 1].flags = SWITCH_WAITS;
    scenario_event(s, time + 1000000, EVENT_WAKING, 1, SERVER_THREAD);
    scenario_switch(s, time + 1000000, 0, SERVER_THREAD, "server");
}

static struct seen *begin(void)
{
    static struct seen seen;
    seen = (struct seen){0};
    scenario_switch(&seen.scenario, SCENARIO_BEGIN_NS, 0, SERVER_THREAD, "server");
    return &seen;
}

// The call that the server's thread is in between the first and the second sight, -1: none; lasting
// up to the second.
static int between(struct seen *seen)
{
    struct time_source clock = scenario_clock();
    struct error err = {0};
    int64_t until;
    scenario_switch(&seen->scenario, SCENARIO_BEGIN_NS + 9000000, 0, 0, "swapper/0");
    assert_int_equal(host_timeline_build(seen->scenario.events.items, seen->scenario.events.count,
                                         &clock, &seen->host, &err),
                     0);
    const struct detour *call =
        call_at(&seen->host, SERVER_THREAD, SCENARIO_BEGIN_NS + BETWEEN_NS, &until);
    const int number = call ? call->kind : -1;
    if (call)
        assert_true(until <= SCENARIO_BEGIN_NS + SECOND_NS);
    assert_null(call_at(&seen->host, SERVER_THREAD, SCENARIO_BEGIN_NS + SECOND_NS + 1, &until));
    host_timeline_free(&seen->host);
    scenario_free(&seen->scenario);
    return number;
}

static int two_ticks(uint64_t call, uint64_t instance, uint64_t then, uint64_t its_instance)
{
    struct seen *seen = begin();
    tick(seen, FIRST_NS, SERVER_THREAD, call, instance);
    tick(seen, SECOND_NS, SERVER_THREAD, then, its_instance);
    return between(seen);
}

static void two_sights_of_a_call_are_one_stay(void **state)
{
    (void)state;
    assert_int_equal(two_ticks(UNLINK, 7, UNLINK, 7), UNLINK);
    assert_int_equal(two_ticks(MMAP, 8, MMAP, 8), MMAP);
    struct seen *seen = begin(); // it sleeps before, and is interrupted later
    nap(seen, FIRST_NS, FSYNC, 7);
    tick(seen, SECOND_NS, SERVER_THREAD, FSYNC, 7);
    assert_int_equal(between(seen), FSYNC);
    seen = begin(); // it sleeps twice
    nap(seen, FIRST_NS, FSYNC, 7);
    nap(seen, SECOND_NS, FSYNC, 7);
    assert_int_equal(between(seen), FSYNC);
}

static void other_calls_are_not(void **state)
{
    (void)state;
    assert_int_equal(two_ticks(UNLINK, 7, UNLINK, 8), -1);
    assert_int_equal(two_ticks(UNLINK, 7, FSYNC, 7), -1);
    assert_int_equal(two_ticks(UNLINK, 7, UNLINK, 0), -1);
    assert_int_equal(two_ticks(UNLINK, 0, UNLINK, 0), -1);
    struct seen *seen = begin(); // it was in its program between the two
    tick(seen, FIRST_NS, SERVER_THREAD, UNLINK, 7);
    tick(seen, FIRST_NS + 1000, SERVER_THREAD, UNLINK, 0);
    tick(seen, SECOND_NS, SERVER_THREAD, UNLINK, 7);
    assert_int_equal(between(seen), -1);
    seen = begin(); // it waited for another thread between the two
    tick(seen, FIRST_NS, SERVER_THREAD, FSYNC, 7);
    nap(seen, FIRST_NS + 1000, FUTEX, 7);
    tick(seen, SECOND_NS, SERVER_THREAD, FSYNC, 7);
    assert_int_equal(between(seen), -1);
    seen = begin(); // it waited for sockets between the two
    tick(seen, FIRST_NS, SERVER_THREAD, UNLINK, 7);
    nap(seen, FIRST_NS + 1000, 0, 0);
    tick(seen, SECOND_NS, SERVER_THREAD, UNLINK, 7);
    assert_int_equal(between(seen), -1);
}

static void calls_of_loops_are_not_known_again(void **state)
{
    (void)state;
    assert_int_equal(two_ticks(SENDTO, 7, SENDTO, 7), -1);
    assert_int_equal(two_ticks(EPOLL_WAIT, 7, EPOLL_WAIT, 7), -1);
    assert_int_equal(two_ticks(CLOCK_GETTIME, 7, CLOCK_GETTIME, 7), -1);
    assert_int_equal(two_ticks(READ, 7, READ, 7), READ); // of a file, as far as this can tell
    assert_int_equal(two_ticks(WRITE, 7, WRITE, 7), WRITE);
    struct seen *seen = begin(); // it waited for something to do
    nap(seen, FIRST_NS, READ, 7);
    tick(seen, SECOND_NS, SERVER_THREAD, READ, 7);
    assert_int_equal(between(seen), -1);
}

static void another_threads_calls_are_its_own(void **state)
{
    (void)state;
    struct seen *seen = begin();
    tick(seen, FIRST_NS, SERVER_THREAD, UNLINK, 7);
    tick(seen, FIRST_NS + 1000, OTHER_THREAD, FSYNC, 9);
    tick(seen, SECOND_NS, SERVER_THREAD, UNLINK, 7);
    assert_int_equal(between(seen), UNLINK);
    seen = begin();
    tick(seen, FIRST_NS, OTHER_THREAD, UNLINK, 7);
    tick(seen, SECOND_NS, OTHER_THREAD, UNLINK, 7);
    assert_int_equal(between(seen), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_sights_of_a_call_are_one_stay),
        cmocka_unit_test(other_calls_are_not),
        cmocka_unit_test(calls_of_loops_are_not_known_again),
        cmocka_unit_test(another_threads_calls_are_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
