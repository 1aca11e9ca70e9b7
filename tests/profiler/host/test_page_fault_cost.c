// SPDX-License-Identifier: MIT
//
// What a page fault is said to cost: something, and no more than half of the faults that were tried
// took.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>
#include <cmocka.h>

#include "base/clock.h"
#include "profiler/host/page_fault_cost.h"

static void costs_no_more_than_was_tried(void **state)
{
    enum { FAULTS = 256 };
    (void)state;
    int64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
    int64_t cost_ns = page_fault_cost_ns();
    int64_t took_ns = clock_now_ns(CLOCK_MONOTONIC_RAW) - begin_ns;
    assert_true(cost_ns > 0);
    assert_true(cost_ns * (FAULTS / 2) <= took_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(costs_no_more_than_was_tried)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
