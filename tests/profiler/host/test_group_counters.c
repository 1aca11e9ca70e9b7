// SPDX-License-Identifier: MIT
//
// The kernel's account of control groups that were held back, as either version writes it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "profiler/host/group_counters.h"

static void numbers_behind_words_are_read(void **state)
{
    (void)state;
    uint64_t number = 7;
    const char *stat = "nr_periods 7\nnr_throttled 3\nthrottled_time 12345678\nnr_bursts 0\n";
    assert_true(group_counter_number(stat, "nr_throttled", &number));
    assert_int_equal(number, 3);
    assert_true(group_counter_number(stat, "throttled_time", &number));
    assert_int_equal(number, 12345678);
    // No part of a word is one.
    const char *events = "low 0\nhigh 4\nmax 17\noom 0\noom_kill 2";
    assert_true(group_counter_number(events, "max", &number));
    assert_int_equal(number, 17);
    assert_true(group_counter_number(events, "oom_kill", &number));
    assert_int_equal(number, 2);
    assert_false(group_counter_number(events, "oom_k", &number));
    assert_false(group_counter_number("", "max", &number));
    assert_int_equal(number, 2);
}

static void what_did_not_move_is_not_told(void **state)
{
    (void)state;
    struct group_counters before;
    group_counters_read(&before);
    json_t *one, *moved = group_counters_moved(&before);
    size_t i;
    assert_non_null(moved);
    json_array_foreach(json_object_get(moved, "quotas"), i, one)
        assert_true(json_number_value(json_object_get(one, "throttled_ms")) > 0 ||
                    json_integer_value(json_object_get(one, "times")) > 0);
    json_array_foreach(json_object_get(moved, "memory_limits"), i, one)
        assert_true(json_integer_value(json_object_get(one, "times")) > 0);
    json_decref(moved);
    group_counters_free(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_behind_words_are_read),
        cmocka_unit_test(what_did_not_move_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
