// SPDX-License-Identifier: MIT
//
// Anderson-Darling against published tables and reference values, and its size and power by
// simulation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <gsl/gsl_randist.h>

#include "base/quantile.h"
#include "loadgen/method/method_anderson_darling.h"
#include "tests/loadgen/method/method_series.h"

// D'Agostino and Stephens 1986, table 4.2 (case 0, modified statistic for n >= 5: the statistic).
static void known_p_matches_the_table(void **state)
{
    (void)state;
    static const double table[][2] = {{1.248, 0.25},  {1.610, 0.15},  {1.933, 0.10},
                                      {2.492, 0.05},  {3.070, 0.025}, {3.880, 0.01},
                                      {4.500, 0.005}, {6.000, 0.001}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        double p = anderson_darling_p_known(table[i][0], 1000000);
        assert_true(series_near(p / table[i][1], 1, 0.04));
    }
    // Marsaglia and Marsaglia 2004, §2: the limiting distribution at 2 is 0.90816...
    assert_true(series_near(anderson_darling_p_known(2, 100000000), 1 - 0.90816, 1e-5));
    assert_true(anderson_darling_p_known(0, 10) > 0.999);
    assert_true(anderson_darling_p_known(1e9, 10) == 0);
    assert_true(isnan(anderson_darling_p_known(NAN, 10)));
}

// D'Agostino and Stephens 1986, table 4.14 (exponential, origin known): of A^2 (1 + 0.6 / n).
static void estimated_p_matches_the_table(void **state)
{
    (void)state;
    static const double table[][2] = {{0.736, 0.25}, {0.816, 0.20},  {0.916, 0.15},
                                      {1.062, 0.10}, {1.321, 0.05},  {1.591, 0.025},
                                      {1.959, 0.01}, {2.244, 0.005}, {2.534, 0.0025}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        double statistic = table[i][0] / (1 + 0.6 / 40);
        double p = anderson_darling_p_exponential(statistic, 40);
        assert_true(series_near(p / table[i][1], 1, 0.08));
    }
    // The pieces of the approximation meet, and it never turns upwards.
    for (double a = 0.05, before = 1; a < 60; a += 0.01) {
        double p = anderson_darling_p_exponential(a, 100000000);
        assert_true(p <= before + 0.002 && p >= 0);
        before = p;
    }
}

// Reference: scipy 1.10.1, stats.anderson(x, 'expon') and stats.kstest(x, 'expon', (0, 100)), of
// x = -100 log(1 - u), u: series_fill(60, seed 7); the known case by its definition in numpy.
static void statistics_match_scipy(void **state)
{
    (void)state;
    double values[60];
    struct exponential_fit fit;
    series_fill(values, 60, 7);
    for (size_t i = 0; i < 60; i++)
        values[i] = -100 * log1p(-values[i]);
    quantile_sort(values, 60);
    exponential_fit_sorted(values, 60, 100, &fit);
    assert_true(series_near(fit.estimated_statistic, 0.2856632985944145, 1e-9));
    assert_true(series_near(fit.known_statistic, 0.2908416049404252, 1e-9));
    assert_true(series_near(fit.distance, 0.058064356756707035, 1e-12));
    assert_true(series_near(fit.mean, 99.54483789171582, 1e-9));
    assert_true(series_near(fit.variation, 1.0360230063399767, 1e-9));
    assert_true(fit.known_p > 0.9 && fit.estimated_p > 0.8);
}

static double identity(double value, const void *parameters)
{
    (void)parameters;
    return value;
}

static void any_distribution_can_be_the_known_one(void **state)
{
    (void)state;
    // Three values by hand: -3 - 1/3 (ln 0.2 + 5 ln 0.8 + 3 ln 0.5 + 3 ln 0.5 + 5 ln 0.9 + ln 0.1).
    static const double values[] = {0.2, 0.5, 0.9};
    double expected = -3 - (log(0.2) + 5 * log(0.8) + 6 * log(0.5) + 5 * log(0.9) + log(0.1)) / 3;
    assert_true(series_near(anderson_darling(values, 3, identity, NULL), expected, 1e-12));
    assert_true(
        series_near(kolmogorov_smirnov_distance(values, 3, identity, NULL), 0.9 - 2.0 / 3, 1e-12));
    static const double impossible[] = {-1, 0.5, 2};
    assert_true(isfinite(anderson_darling(impossible, 3, identity, NULL)));
    assert_true(isnan(anderson_darling(values, 0, identity, NULL)));
    assert_true(isnan(kolmogorov_smirnov_distance(values, 0, identity, NULL)));
}

// How many of `rounds` samples of a gamma distribution with mean 1 are rejected at 5 %.
static void reject(double shape, unsigned count, unsigned rounds, unsigned *known,
                   unsigned *estimated)
{
    double values[500];
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, 11);
    *known = *estimated = 0;
    for (unsigned round = 0; round < rounds; round++) {
        struct exponential_fit fit;
        for (unsigned i = 0; i < count; i++)
            values[i] = gsl_ran_gamma(random, shape, 1 / shape);
        quantile_sort(values, count);
        exponential_fit_sorted(values, count, 1, &fit);
        *known += fit.known_p < 0.05;
        *estimated += fit.estimated_p < 0.05;
    }
    gsl_rng_free(random);
}

static void size_and_power_are_right(void **state)
{
    (void)state;
    unsigned known, estimated;
    static const unsigned counts[] = {10, 100, 500};
    for (size_t i = 0; i < 3; i++) { // 2000 tests at 5 %: 100, give or take 4 times 9.7
        reject(1, counts[i], 2000, &known, &estimated);
        assert_in_range(known, 61, 139);
        assert_in_range(estimated, 61, 139);
    }
    reject(1.5, 500, 200, &known, &estimated); // CV 0.82
    assert_true(known > 190 && estimated > 190);
    reject(0.7, 500, 200, &known, &estimated); // CV 1.2
    assert_true(known > 190 && estimated > 190);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_p_matches_the_table),
        cmocka_unit_test(estimated_p_matches_the_table),
        cmocka_unit_test(statistics_match_scipy),
        cmocka_unit_test(any_distribution_can_be_the_known_one),
        cmocka_unit_test(size_and_power_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
