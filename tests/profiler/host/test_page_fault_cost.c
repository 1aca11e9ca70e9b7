// SPDX-License-Identifier: MIT
//
// What a page fault is said to cost: something, and no more than half of the faults that were tried
// took; before its handler less than a fault after a rest takes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "profiler/host/page_fault_cost.h"

static bool faults_can_be_counted(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_PAGE_FAULTS,
                                   .exclude_kernel = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void costs_no_more_than_was_tried(void **state)
{
    enum { FAULTS = 256, AFTER_A_REST = 16 };
    (void)state;
    int64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
    struct page_fault_cost cost = page_fault_cost_try();
    int64_t took_ns = clock_now_ns(CLOCK_MONOTONIC_RAW) - begin_ns;
    assert_true(cost.whole_ns > 0);
    assert_true(cost.whole_ns * (FAULTS / 2) <= took_ns);
    assert_true(cost.before_ns >= 0);
    assert_true(cost.before_ns * (AFTER_A_REST / 2) <= took_ns);
    if (faults_can_be_counted())
        assert_true(cost.before_ns > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(costs_no_more_than_was_tried)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
