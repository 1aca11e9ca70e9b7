// SPDX-License-Identifier: MIT
//
// How busy cores were, by /proc/stat.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "experiments/common/core_times.h"

static const char text[] = "cpu  10 0 20 3000 40 0 0 0 0 0\n"
                           "cpu0 5 0 10 1000 10 1 2 3 0 0\n"
                           "cpu1 5 0 10 2000 30 1 2 3 0 0\n"
                           "cpu10 5 0 10 500 0 1 2 3 0 0\n"
                           "intr 1234 0 0\n"
                           "ctxt 99\n";

static void idle_time_is_added_up_over_the_cores(void **state)
{
    (void)state;
    cpu_set_t cores;
    struct core_times times = {0};
    CPU_ZERO(&cores);
    CPU_SET(1, &cores);
    CPU_SET(10, &cores);
    CPU_SET(11, &cores);
    core_times_parse(text, &cores, 100, &times);
    assert_int_equal(times.cores, 2); // the third is not there
    assert_int_equal(times.idle_ns, 2530 * 10000000ull);
    times = (struct core_times){0};
    core_times_parse("", &cores, 100, &times);
    assert_int_equal(times.cores, 0);
}

static void busy_is_what_is_not_idle(void **state)
{
    (void)state;
    const struct core_times from = {.now_ns = 1000, .idle_ns = 500, .cores = 2};
    const struct core_times to = {.now_ns = 2000, .idle_ns = 2000, .cores = 2};
    const struct core_times more = {.now_ns = 2000, .idle_ns = 3000, .cores = 2};
    assert_true(core_times_busy_ns(&from, &to) > 499 && core_times_busy_ns(&from, &to) < 501);
    assert_true(core_times_busy_ns(&from, &more) < 1); // ticks are coarse: never below nothing
}

static void this_machine_tells(void **state)
{
    (void)state;
    cpu_set_t cores;
    struct core_times times;
    CPU_ZERO(&cores);
    assert_false(core_times_read(&cores, &times));
    CPU_SET(CPU_SETSIZE - 1, &cores);
    assert_false(core_times_read(&cores, &times));
    assert_int_equal(sched_getaffinity(0, sizeof cores, &cores), 0);
    assert_true(core_times_read(&cores, &times));
    assert_true(times.now_ns > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_time_is_added_up_over_the_cores),
        cmocka_unit_test(busy_is_what_is_not_idle),
        cmocka_unit_test(this_machine_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
