// SPDX-License-Identifier: MIT
//
// When a capture does without part of its programs: while there are many messages, and every tenth
// segment not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "profiler/events_sparing.h"

enum { SECOND = 1000000000 };

static bool decide(struct events_sparing *sparing, uint64_t requests_per_second)
{
    events_sparing_decide(sparing, requests_per_second, SECOND / 2); // two records for each
    return sparing->on;
}

static void few_messages_spare_nothing(void **state)
{
    (void)state;
    struct events_sparing sparing = {.above = 1000};
    for (int i = 0; i < 30; i++)
        assert_false(decide(&sparing, 1000));
    events_sparing_decide(&sparing, 5, 0); // a cut right after another
    assert_false(sparing.on);
}

static void every_tenth_segment_is_whole(void **state)
{
    (void)state;
    struct events_sparing sparing = {.above = 1000};
    for (int i = 0; i < 30; i++)
        assert_int_equal(decide(&sparing, 1001), i % 10 != 9);
}

static void it_ends_further_down(void **state)
{
    (void)state;
    struct events_sparing sparing = {.above = 1000};
    assert_true(decide(&sparing, 1100));
    assert_true(decide(&sparing, 700));
    assert_false(decide(&sparing, 600));
    assert_false(decide(&sparing, 900));
    assert_true(decide(&sparing, 1100));
}

static void none_is_spared_unasked(void **state)
{
    (void)state;
    struct events_sparing sparing = {0};
    assert_false(decide(&sparing, 1000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_messages_spare_nothing),
        cmocka_unit_test(every_tenth_segment_is_whole),
        cmocka_unit_test(it_ends_further_down),
        cmocka_unit_test(none_is_spared_unasked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
