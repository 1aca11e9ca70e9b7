// SPDX-License-Identifier: MIT
//
// The benchmarks' table of figures: as many as a benchmark has cases for, each with its own rounds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/bench/bench.h"

enum { FIGURES = 1000, ROUNDS = 3 };

static void every_figure_of_many_is_kept(void **state)
{
    (void)state;
    struct bench_metrics metrics = {0};
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < FIGURES; i++)
            bench_add(&metrics, "us", 10.0 * i + round, "case%d_cpu", i);
    assert_int_equal(metrics.count, FIGURES);
    for (int i = 0; i < FIGURES; i++) {
        assert_true(bench_median(&metrics, "case%d_cpu", i) == 10.0 * i + 1);
        assert_true(bench_latest(&metrics, "case%d_cpu", i) == 10.0 * i + 2);
    }
    assert_true(isnan(bench_median(&metrics, "case%d_cpu", FIGURES)));
    array_free(&metrics);
}

static void what_is_no_number_is_left_out(void **state)
{
    (void)state;
    struct bench_metrics metrics = {0};
    bench_add(&metrics, "times", NAN, "ratio");
    assert_true(isnan(bench_latest(&metrics, "ratio")));
    bench_add(&metrics, "times", 2, "ratio");
    assert_int_equal(metrics.items[0].count, 1);
    assert_true(bench_latest(&metrics, "ratio") == 2);
    array_free(&metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_figure_of_many_is_kept),
        cmocka_unit_test(what_is_no_number_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
