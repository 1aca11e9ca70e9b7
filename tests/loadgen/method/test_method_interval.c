// SPDX-License-Identifier: MIT
//
// Intervals of percentiles: coverage, how many samples a width takes, and heavy tails.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <gsl/gsl_randist.h>

#include "loadgen/method/method_interval.h"
#include "tests/loadgen/method/method_series.h"

enum { MOST = 40000 };

static gsl_rng *new_random(unsigned long seed)
{
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, seed);
    return random;
}

static void take(const double *values, size_t count, double q, struct percentile_interval *found)
{
    struct error err;
    assert_int_equal(percentile_interval_take(values, count, 1, q, 0.95, found, &err), 0);
}

static void the_least_number_is_the_least(void **state)
{
    (void)state;
    static const double quantiles[] = {0.5, 0.9, 0.99, 0.999, 0.05};
    static double sorted[MOST];
    for (size_t i = 0; i < MOST; i++)
        sorted[i] = (double)i;
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        size_t least = percentile_interval_least(quantiles[i], 0.95);
        assert_true(quantile_interval_sorted(sorted, least, quantiles[i], 0.95).known);
        assert_false(quantile_interval_sorted(sorted, least - 2, quantiles[i], 0.95).known);
    }
}

// Le Boudec, "Performance Evaluation of Computer and Communication Systems" (EPFL Press 2010),
// table A.1: the median of 50 samples lies between the 18th and the 33rd at 95 %.
static void interval_matches_the_table(void **state)
{
    (void)state;
    double values[50];
    struct percentile_interval found;
    for (size_t i = 0; i < 50; i++)
        values[i] = (double)(i + 1);
    take(values, 50, 0.5, &found);
    assert_true(found.interval.known);
    assert_true(found.interval.low == 18 && found.interval.high == 33 && found.width == 15);
}

static void the_needed_number_reaches_the_width(void **state)
{
    (void)state;
    double *values = calloc(MOST, sizeof *values);
    gsl_rng *random = new_random(7);
    unsigned covered = 0, reached = 0;
    double excess = 0; // over an exponential distribution's width, which it is
    for (unsigned round = 0; round < 100; round++) {
        struct percentile_interval found;
        for (size_t i = 0; i < 18001; i++)
            values[i] = gsl_ran_exponential(random, 100);
        take(values, 2000, 0.99, &found);
        excess += found.excess / 100;
        covered += found.interval.low <= -100 * log(0.01) && -100 * log(0.01) < found.interval.high;
        double width = found.width / 3;
        double needed = percentile_interval_needed(&found, 0.99, 0.95, width);
        assert_true(series_near(needed, 18000, 1));
        take(values, (size_t)needed, 0.99, &found);
        reached += found.width < 1.5 * width && found.width > width / 1.5;
        assert_false(found.heavy);
    }
    assert_true(series_near(excess, 1.1, 0.15)); // whole ranks make it a little wider
    assert_in_range(covered, 89, 100);           // 95 % or a little more
    assert_true(reached > 70);                   // as good as one width foretells another
    gsl_rng_free(random);
    free(values);
}

// Values at the quantiles of a Pareto distribution have its index.
static void tail_index_is_the_paretos(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    double *values = calloc(COUNT, sizeof *values), *work = calloc(COUNT, sizeof *work);
    for (double alpha = 0.5; alpha < 6; alpha *= 2) {
        for (size_t i = 0; i < COUNT; i++)
            values[i] = pow(1 - ((double)i + 0.5) / COUNT, -1 / alpha);
        assert_true(series_near(hill_tail_index(values, COUNT, 1000, work) / alpha, 1, 0.02));
    }
    assert_true(isnan(hill_tail_index(values, COUNT, 0, work)));
    assert_true(isnan(hill_tail_index(values, COUNT, COUNT, work)));
    values[COUNT - 1] = INFINITY;
    assert_true(isnan(hill_tail_index(values, COUNT, 1000, work)));
    free(values);
    free(work);
}

// Values that come eight times over are worth an eighth, whatever the thinning.
static void the_interval_is_as_wide_as_dependence_makes_it(void **state)
{
    (void)state;
    enum { COUNT = 8000 };
    double values[COUNT], once[COUNT / 8], ratio = 0;
    gsl_rng *random = new_random(23);
    unsigned covered = 0;
    for (unsigned round = 0; round < 100; round++) {
        struct percentile_interval found, expected;
        struct error err;
        for (size_t i = 0; i < COUNT; i++)
            values[i] = i % 8 ? values[i - 1] : gsl_ran_exponential(random, 100);
        for (size_t i = 0; i < COUNT; i += 8)
            once[i / 8] = values[i];
        take(once, COUNT / 8, 0.9, &expected);
        assert_int_equal(percentile_interval_take(values, COUNT, 3, 0.9, 0.95, &found, &err), 0);
        assert_int_equal(found.count, COUNT);
        assert_true(found.value == expected.value);
        ratio += found.width / expected.width / 100;
        covered += found.interval.low <= 100 * log(10) && 100 * log(10) <= found.interval.high;
    }
    gsl_rng_free(random);
    assert_true(series_near(ratio, 1.1, 0.1));
    assert_in_range(covered, 91, 100);
}

// Stalls, which the blocks' scatter makes much of: intervals of any percentiles are in order,
// within what was seen, and the same whatever else is asked for.
static void intervals_are_ordered_and_within_what_was_seen(void **state)
{
    (void)state;
    enum { COUNT = 8000, ASKED = 6 };
    static const double quantiles[ASKED] = {0.25, 0.5, 0.9, 0.99, 0.999, 0.9999};
    double *values = calloc(COUNT, sizeof *values), found[ASKED];
    gsl_rng *random = new_random(41);
    struct quantile_interval all[ASKED];
    unsigned bounded = 0;
    for (unsigned round = 0; round < 40; round++) {
        struct percentile_interval alone;
        struct error err;
        double stalled = 0, least = INFINITY, greatest = 0;
        for (size_t i = 0; i < COUNT; i++) {
            stalled = gsl_rng_uniform(random) < 0.001 ? 1e5 : fmax(0, stalled - 200);
            values[i] = gsl_ran_exponential(random, 100) + stalled;
            least = fmin(least, values[i]);
            greatest = fmax(greatest, values[i]);
        }
        assert_int_equal(
            percentile_intervals_take(values, COUNT, quantiles, ASKED, 0.95, found, all, &err), 0);
        for (size_t i = 0; i < ASKED; i++) {
            take(values, COUNT, quantiles[i], &alone);
            assert_int_equal(all[i].known, alone.interval.known);
            if (!all[i].known)
                continue;
            assert_true(all[i].low == alone.interval.low && all[i].high == alone.interval.high);
            assert_true(least <= all[i].low && all[i].low <= found[i] && found[i] <= all[i].high &&
                        all[i].high <= greatest);
            assert_true(i == 0 || !all[i - 1].known ||
                        (all[i - 1].low <= all[i].low && all[i - 1].high <= all[i].high));
            bounded += all[i].high == greatest;
        }
    }
    assert_true(bounded > 0); // by what was seen: without that they went beyond
    gsl_rng_free(random);
    free(values);
}

static void clusters_beyond_the_percentile_are_seen(void **state)
{
    (void)state;
    double *values = calloc(MOST, sizeof *values), mean = 0;
    gsl_rng *random = new_random(17);
    struct percentile_interval found;
    for (unsigned round = 0; round < 50; round++) {
        for (size_t i = 0; i < 5000; i++)
            values[i] = gsl_ran_exponential(random, 100);
        take(values, 5000, 0.99, &found);
        mean += found.clustering / 50;
        assert_true(found.clustering < 2.5); // chi-squared with 19 degrees: once in 10,000
    }
    assert_true(series_near(mean, 1, 0.15));
    for (size_t i = 0; i < 5000; i++) // ranks wander, the tail does not
        values[i] = gsl_rng_uniform(random) < 0.02 ? gsl_ran_flat(random, 200, 300)
                                                   : 50 + sin((double)i / 100);
    take(values, 5000, 0.99, &found);
    assert_true(found.clustering < 2);
    for (size_t i = 0; i < 5000; i++) // a stall for every thousand requests
        values[i] = i % 1000 < 20 ? gsl_ran_flat(random, 200, 300) : 50;
    take(values, 5000, 0.99, &found);
    assert_true(found.clustering > 5);
    gsl_rng_free(random);
    free(values);
}

static unsigned judged_heavy(int shape, unsigned rounds)
{
    double *values = calloc(MOST, sizeof *values);
    gsl_rng *random = new_random(13);
    unsigned heavy = 0;
    for (unsigned round = 0; round < rounds; round++) {
        struct percentile_interval found;
        for (size_t i = 0; i < MOST; i++)
            values[i] = shape == 0   ? gsl_ran_exponential(random, 100)
                        : shape == 1 ? gsl_ran_gamma(random, 3, 20)
                        : shape == 2 ? gsl_ran_pareto(random, 1.2, 10)
                                     : gsl_ran_lognormal(random, 3, 2);
        take(values, MOST, 0.99, &found);
        assert_true(isfinite(found.shrinking));
        heavy += found.heavy;
    }
    gsl_rng_free(random);
    free(values);
    return heavy;
}

static void heavy_tails_are_told_from_light_ones(void **state)
{
    (void)state;
    assert_true(judged_heavy(0, 20) <= 1);
    assert_true(judged_heavy(1, 20) <= 1);
    assert_true(judged_heavy(2, 20) >= 19);
    assert_true(judged_heavy(3, 20) >= 19);
}

static void unanswered_requests_are_not_hidden(void **state)
{
    (void)state;
    double values[1000];
    struct percentile_interval found;
    for (size_t i = 0; i < 1000; i++)
        values[i] = i % 50 ? (double)i : INFINITY; // 2 %
    take(values, 1000, 0.99, &found);
    assert_true(isinf(found.value) && isinf(found.width));
    assert_true(isinf(percentile_interval_needed(&found, 0.99, 0.95, 10)));
    take(values, 100, 0.99, &found); // not to be bounded by so few
    assert_true(isnan(found.width));
    assert_true(percentile_interval_needed(&found, 0.99, 0.95, 10) >= 369);
    take(values, 0, 0.99, &found);
    assert_true(isnan(found.value) && isnan(found.width));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_number_is_the_least),
        cmocka_unit_test(interval_matches_the_table),
        cmocka_unit_test(the_needed_number_reaches_the_width),
        cmocka_unit_test(tail_index_is_the_paretos),
        cmocka_unit_test(the_interval_is_as_wide_as_dependence_makes_it),
        cmocka_unit_test(intervals_are_ordered_and_within_what_was_seen),
        cmocka_unit_test(clusters_beyond_the_percentile_are_seen),
        cmocka_unit_test(heavy_tails_are_told_from_light_ones),
        cmocka_unit_test(unanswered_requests_are_not_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
