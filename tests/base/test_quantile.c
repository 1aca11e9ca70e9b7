// SPDX-License-Identifier: MIT
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_sort_double.h>

#include "base/quantile.h"

static void quantiles_are_values_that_were_seen(void **state)
{
    (void)state;
    double values[] = {5, 1, INFINITY, 3, 2};
    quantile_sort(values, 5);
    assert_true(quantile_sorted(values, 5, 0) == 1);
    assert_true(quantile_sorted(values, 5, 0.2) == 1);
    assert_true(quantile_sorted(values, 5, 0.21) == 2);
    assert_true(quantile_sorted(values, 5, 0.5) == 3);
    assert_true(quantile_sorted(values, 5, 0.8) == 5);
    assert_true(isinf(quantile_sorted(values, 5, 1)));
    assert_true(isnan(quantile_sorted(values, 0, 0.5)));
}

// Le Boudec, table A.1: for n = 100 the 95 % interval of the median is [x(40), x(61)];
// for n = 10 it is [x(2), x(9)].
static void median_intervals_match_the_published_table(void **state)
{
    (void)state;
    double values[100];
    for (int i = 0; i < 100; i++)
        values[i] = i + 1;
    struct quantile_interval hundred = quantile_interval_sorted(values, 100, 0.5, 0.95);
    assert_true(hundred.known);
    assert_true(hundred.low == 40 && hundred.high == 61);
    struct quantile_interval ten = quantile_interval_sorted(values, 10, 0.5, 0.95);
    assert_true(ten.known && ten.low == 2 && ten.high == 9);
}

static void too_few_samples_bound_nothing(void **state)
{
    (void)state;
    double values[300];
    for (int i = 0; i < 300; i++)
        values[i] = i;
    assert_false(quantile_interval_sorted(values, 300, 0.999, 0.95).known);
    assert_false(quantile_interval_sorted(values, 5, 0.5, 0.95).known);
    assert_false(quantile_interval_sorted(values, 300, 1, 0.95).known);
    assert_false(quantile_interval_sorted(values, 0, 0.5, 0.95).known);
    assert_true(quantile_interval_sorted(values, 300, 0.9, 0.95).known);
}

static void intervals_hold_the_truth_as_often_as_they_say(void **state)
{
    (void)state;
    enum { TRIALS = 2000, SAMPLES = 1000 };
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, 7);
    const double quantile = 0.99, truth = -log(1 - quantile);
    int held = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        static double values[SAMPLES];
        for (int i = 0; i < SAMPLES; i++)
            values[i] = gsl_ran_exponential(random, 1);
        quantile_sort(values, SAMPLES);
        struct quantile_interval interval =
            quantile_interval_sorted(values, SAMPLES, quantile, 0.95);
        held += interval.known && interval.low <= truth && truth <= interval.high;
    }
    gsl_rng_free(random);
    // At least 95 %, less four standard errors of the trial itself; conservative, but not always
    // true.
    assert_in_range(held, 1861, 1990);
}

// Small, large, equal, negative and infinite values: as a comparison sort has them, to the bit.
static void sorting_is_exact(void **state)
{
    (void)state;
    static double values[20000], expected[20000];
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, 11);
    for (int trial = 0; trial < 60; trial++) {
        size_t count = trial < 4 ? (size_t)trial : gsl_rng_uniform_int(random, 20000);
        for (size_t i = 0; i < count; i++) {
            double value = gsl_ran_lognormal(random, 0, trial % 3 * 10);
            value = trial % 2 ? value : gsl_rng_uniform(random) < 0.5 ? -value : value;
            value = trial % 5 == 4 ? floor(value) : value;
            values[i] = gsl_rng_uniform(random) < 0.01 ? INFINITY : value;
        }
        memcpy(expected, values, count * sizeof *values);
        gsl_sort(expected, 1, count);
        quantile_sort(values, count);
        assert_memory_equal(values, expected, count * sizeof *values);
    }
    gsl_rng_free(random);
}

// At any ranks, in any order: what sorting finds there, to the bit; also where most values are
// alike, infinite, or beyond the probes that the buckets are laid by.
static void selecting_finds_what_sorting_does(void **state)
{
    (void)state;
    enum { MOST = 30000, RANKS = 9 };
    static double values[MOST], sorted[MOST], work[MOST];
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, 13);
    for (int trial = 0; trial < 200; trial++) {
        size_t count = 1 + gsl_rng_uniform_int(random, trial % 4 ? MOST : 1200);
        size_t ranks[RANKS] = {0, count - 1};
        double found[RANKS];
        for (size_t i = 0; i < count; i++) {
            double value = gsl_ran_lognormal(random, 0, trial % 3 * 10);
            value = trial % 2 ? value : gsl_rng_uniform(random) < 0.5 ? -value : value;
            value = trial % 5 == 4 ? floor(value) : trial % 7 == 6 ? 3 : value;
            values[i] = gsl_rng_uniform(random) < 0.01 ? INFINITY : value;
        }
        for (size_t i = 2; i < RANKS; i++)
            ranks[i] = gsl_rng_uniform_int(random, count);
        memcpy(sorted, values, count * sizeof *values);
        quantile_sort(sorted, count);
        quantile_select(values, count, ranks, RANKS, work, found);
        for (size_t i = 0; i < RANKS; i++)
            assert_memory_equal(&found[i], &sorted[ranks[i]], sizeof *found);
        double q = gsl_rng_uniform(random), seen = quantile_sorted(sorted, count, q);
        double own = quantile_of(values, count, q, work);
        assert_memory_equal(&own, &seen, sizeof own);
        const double both[2] = {q, 0.5};
        quantile_pair_of(values, count, both, work, found);
        assert_memory_equal(&found[0], &seen, sizeof seen);
        assert_true(found[1] == quantile_sorted(sorted, count, 0.5));
        size_t above = 0;
        for (size_t i = 0; i < count; i++)
            above += values[i] > seen;
        assert_int_equal(count_above(values, count, seen), above);
        struct quantile_interval expected = quantile_interval_sorted(sorted, count, q, 0.95);
        struct quantile_interval interval = quantile_interval_of(values, count, q, 0.95, values);
        assert_true(interval.known == expected.known);
        assert_true(!interval.known ||
                    (interval.low == expected.low && interval.high == expected.high));
    }
    gsl_rng_free(random);
}

// A permutation that sorts, and leaves equal values as they stood.
static void the_order_is_stable(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static double values[COUNT];
    static uint32_t order[COUNT];
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, 17);
    for (size_t i = 0; i < COUNT; i++)
        values[i] = i % 100 ? floor(gsl_ran_gaussian(random, 1000)) : INFINITY;
    assert_true(quantile_order(values, COUNT, order));
    for (size_t i = 1; i < COUNT; i++) {
        double before = values[order[i - 1]], here = values[order[i]];
        assert_true(before < here || (before == here && order[i - 1] < order[i]));
    }
    assert_true(quantile_order(values, 0, order));
    gsl_rng_free(random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_values_that_were_seen),
        cmocka_unit_test(median_intervals_match_the_published_table),
        cmocka_unit_test(too_few_samples_bound_nothing),
        cmocka_unit_test(sorting_is_exact),
        cmocka_unit_test(selecting_finds_what_sorting_does),
        cmocka_unit_test(the_order_is_stable),
        cmocka_unit_test(intervals_hold_the_truth_as_often_as_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
