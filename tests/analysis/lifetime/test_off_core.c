// SPDX-License-Identifier: MIT
//
// A message's thread that is preempted, sleeps and is woken between its receive call and the send
// call, on one core.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/lifetime/off_core.h"
#include "analysis/timeline/timeline.h"
#include "tests/analysis/diagnosis/scenario.h"

enum { THREAD = 7, OTHER = 8, RECEIVED = 1000, REPLIED = 9000 };

struct told {
    int64_t begin_ns[8], end_ns[8];
    size_t count;
};

static void collect(int64_t begin_ns, int64_t end_ns, void *context)
{
    struct told *told = context;
    assert_true(told->count < 8);
    told->begin_ns[told->count] = begin_ns;
    told->end_ns[told->count++] = end_ns;
}

static void comes(struct scenario *events, int64_t at, uint32_t thread, uint8_t flags)
{
    char comm[16] = "thread";
    scenario_switch(events, at, 0, thread, comm);
    events->events.items[events->events.count - 1].flags = flags;
}

// It runs until 2000, is preempted until 3500, sleeps from 5000, is woken at 6000 and runs again at
// 6500.
static void build(struct host_timeline *host)
{
    struct scenario events = {0};
    struct time_source clock = scenario_clock();
    struct error err = {0};
    comes(&events, 500, THREAD, 0);
    comes(&events, 2000, OTHER, SWITCH_PREEMPTED);
    comes(&events, 3500, THREAD, 0);
    comes(&events, 5000, OTHER, 0);
    struct event *waking = scenario_event(&events, 6000, EVENT_WAKING, 0, THREAD);
    waking->payload.b = OTHER;
    comes(&events, 6500, THREAD, SWITCH_PREEMPTED);
    comes(&events, 12000, OTHER, 0);
    assert_int_equal(
        host_timeline_build(events.events.items, events.events.count, &clock, host, &err), 0);
    array_free(&events.events);
}

static struct lifetime message(void)
{
    struct lifetime life = {.thread = THREAD,
                            .send_call = NO_CALL,
                            .present = 1 << STAMP_APPLICATION | 1 << STAMP_REPLY};
    life.stamp_ns[STAMP_APPLICATION] = RECEIVED;
    life.stamp_ns[STAMP_REPLY] = REPLIED;
    return life;
}

static void what_its_thread_does_not_run(void **state)
{
    (void)state;
    struct host_timeline host = {0};
    const struct application_calls none = {0};
    struct lifetime life = message();
    struct told told = {0};
    build(&host);
    off_core_visit(&host, &none, &life, collect, &told);
    int64_t sum = 0;
    for (size_t i = 0; i < told.count; i++)
        sum += told.end_ns[i] - told.begin_ns[i];
    assert_true(told.count >= 2);
    assert_true(told.begin_ns[0] == 2000 && told.end_ns[0] == 3500);
    assert_true(told.begin_ns[1] == 5000 && told.end_ns[told.count - 1] == 6500);
    assert_true(sum == 3000 && off_core_ns(&host, &none, &life) == 3000);
    life.stamp_ns[STAMP_APPLICATION] = 3000; // in the middle of it
    assert_true(off_core_ns(&host, &none, &life) == 2000);
    host_timeline_free(&host);
}

static void nothing_where_that_is_not_known(void **state)
{
    (void)state;
    struct host_timeline host = {0};
    struct application_call item = {.thread = OTHER};
    const struct application_calls none = {0}, calls = {.items = &item, .count = 1};
    struct lifetime life = message();
    assert_true(off_core_ns(&host, &none, &life) == 0); // no events
    build(&host);
    life.send_call = 0; // another thread answers
    assert_true(off_core_ns(&host, &calls, &life) == 0);
    item.thread = THREAD;
    assert_true(off_core_ns(&host, &calls, &life) == 3000);
    life.present = 1 << STAMP_REPLY;
    assert_true(off_core_ns(&host, &calls, &life) == 0);
    life = message();
    life.thread = 99; // of which nothing is recorded
    assert_true(off_core_ns(&host, &none, &life) == 0);
    host_timeline_free(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_its_thread_does_not_run),
        cmocka_unit_test(nothing_where_that_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
