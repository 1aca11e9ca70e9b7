// SPDX-License-Identifier: MIT
//
// The kernel's account of throttled control groups, as either version of them writes it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "profiler/quota_counters.h"

static void both_versions_are_read(void **state)
{
    (void)state;
    struct quota_counter counter = {0};
    quota_counter_parse("nr_periods 7\nnr_throttled 3\nthrottled_time 12345678\nnr_bursts 0\n",
                        &counter);
    assert_int_equal(counter.times, 3);
    assert_int_equal(counter.throttled_ns, 12345678);
    quota_counter_parse("usage_usec 99\nnr_throttled 4\nthrottled_usec 250", &counter);
    assert_int_equal(counter.times, 4);
    assert_int_equal(counter.throttled_ns, 250000);
    quota_counter_parse("", &counter);
    assert_int_equal(counter.times, 4);
}

static void what_did_not_move_is_not_told(void **state)
{
    (void)state;
    struct quota_counters before;
    quota_counters_read(&before);
    json_t *moved = quota_counters_moved(&before);
    assert_non_null(moved);
    for (size_t i = 0; i < json_array_size(moved); i++)
        assert_true(json_number_value(json_object_get(json_array_get(moved, i), "throttled_ms")) >
                        0 ||
                    json_integer_value(json_object_get(json_array_get(moved, i), "times")) > 0);
    json_decref(moved);
    quota_counters_free(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_versions_are_read),
        cmocka_unit_test(what_did_not_move_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
