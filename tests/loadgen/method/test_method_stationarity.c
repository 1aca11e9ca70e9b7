// SPDX-License-Identifier: MIT
//
// Dickey-Fuller against statsmodels and Fuller's table; warm-up against its definition; size and
// power on series of samples by simulation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <gsl/gsl_randist.h>

#include "loadgen/method/method_stationarity.h"
#include "tests/loadgen/method/method_series.h"

enum { LENGTH = 150 };

struct reference {
    const char *name;
    double statistic, p;
    size_t lags, observations;
    double critical_5;
};

// Reference: statsmodels 0.13.5, adfuller(x, regression='c', autolag='AIC'); u = series_fill(150,
// seed 1) - 0.5 drives all of them.
static const struct reference references[] = {
    {"noise", -12.04123790975079, 2.729112027078579e-22, 0, 149, -2.8811408028842043},
    {"ar1", -5.801332651280097, 4.623535104349055e-07, 0, 149, -2.8811408028842043},
    {"ar2", -3.921745571431408, 0.0018805141636726373, 1, 148, -2.881274703275226},
    {"walk", -1.6200229287598404, 0.4727172772653274, 0, 149, -2.8811408028842043},
    {"trend", -0.3649563000314548, 0.915787453755867, 8, 141, -2.882265832283648},
    {"short", -4.921044023554184, 3.17300799513256e-05, 0, 39, -2.939108945868946},
};

static size_t make_series(const char *name, double *y)
{
    double u[LENGTH];
    series_fill(u, LENGTH, 1);
    for (size_t i = 0; i < LENGTH; i++)
        u[i] -= 0.5;
    for (size_t i = 0; i < LENGTH; i++) {
        if (strcmp(name, "ar1") == 0)
            y[i] = i < 1 ? 0 : 0.6 * y[i - 1] + u[i];
        else if (strcmp(name, "ar2") == 0)
            y[i] = i < 2 ? 0 : 0.4 * y[i - 1] + 0.3 * y[i - 2] + u[i];
        else if (strcmp(name, "walk") == 0)
            y[i] = (i ? y[i - 1] : 0) + u[i];
        else if (strcmp(name, "trend") == 0)
            y[i] = (double)i * 0.05 + u[i];
        else
            y[i] = u[i];
    }
    return strcmp(name, "short") == 0 ? 40 : LENGTH;
}

static void dickey_fuller_matches_statsmodels(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof references / sizeof *references; i++) {
        const struct reference *expected = &references[i];
        struct dickey_fuller found;
        double y[LENGTH];
        dickey_fuller_test(y, make_series(expected->name, y), &found);
        assert_true(found.known);
        assert_int_equal(found.lags, expected->lags);
        assert_int_equal(found.observations, expected->observations);
        assert_true(series_near(found.statistic, expected->statistic, 1e-8));
        assert_true(series_near(found.p / expected->p, 1, 1e-6));
        assert_true(series_near(found.critical[DICKEY_FULLER_5], expected->critical_5, 1e-10));
    }
}

// Fuller, "Introduction to Statistical Time Series", Wiley 1976, table 8.5.2 (tau_mu).
static void critical_values_match_fullers_table(void **state)
{
    (void)state;
    static const struct {
        size_t observations;
        double critical[3];
    } table[] = {{25, {-3.75, -3.00, -2.63}},  {50, {-3.58, -2.93, -2.60}},
                 {100, {-3.51, -2.89, -2.58}}, {250, {-3.46, -2.88, -2.57}},
                 {500, {-3.44, -2.87, -2.57}}, {1000000, {-3.43, -2.86, -2.57}}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (unsigned level = DICKEY_FULLER_1; level <= DICKEY_FULLER_10; level++)
            assert_true(series_near(dickey_fuller_critical(level, table[i].observations),
                                    table[i].critical[level], 0.03));
}

// Reference: statsmodels 0.13.5, mackinnonp(t, 'c', 1).
static void p_matches_mackinnon(void **state)
{
    (void)state;
    static const double table[][2] = {{-6, 1.6661204834054382e-07}, {-3.5, 0.007987094061496709},
                                      {-2.86, 0.05020109988200309}, {-2, 0.28657309916843154},
                                      {-1.61, 0.4779756525941893},  {-1, 0.7532643012005655},
                                      {0, 0.958532086060056},       {1.5, 0.99752427540539}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_true(series_near(dickey_fuller_p(table[i][0]) / table[i][1], 1, 1e-9));
    assert_true(dickey_fuller_p(-30) == 0 && dickey_fuller_p(3) == 1);
    assert_true(isnan(dickey_fuller_p(NAN)));
}

static void what_cannot_be_tested_is_unknown(void **state)
{
    (void)state;
    struct dickey_fuller found;
    double constant[100];
    for (size_t i = 0; i < 100; i++)
        constant[i] = 25;
    dickey_fuller_test(constant, 100, &found);
    assert_false(found.known);
    for (size_t count = 0; count < 20; count++) {
        double y[LENGTH];
        make_series("noise", y);
        dickey_fuller_test(y, count, &found);
        assert_true(!found.known || isfinite(found.statistic));
        assert_true(found.known || count < 14);
    }
}

static void dickey_fuller_has_its_size_and_power(void **state)
{
    (void)state;
    unsigned walks = 0, noises = 0;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, 5);
    for (unsigned round = 0; round < 400; round++) {
        double walk[200], noise[200], at = 0;
        struct dickey_fuller found;
        for (unsigned i = 0; i < 200; i++) {
            walk[i] = at += gsl_ran_gaussian(random, 1);
            noise[i] = gsl_ran_exponential(random, 1);
        }
        dickey_fuller_test(walk, 200, &found);
        walks += found.statistic < found.critical[DICKEY_FULLER_5];
        dickey_fuller_test(noise, 200, &found);
        noises += found.statistic < found.critical[DICKEY_FULLER_5];
    }
    gsl_rng_free(random);
    assert_in_range(walks, 6, 42); // 5 % of 400; choosing the lags by the data costs a little
    assert_true(noises >= 396);
}

static void warm_up_is_what_its_definition_says(void **state)
{
    (void)state;
    double y[LENGTH];
    uint64_t seed = 9;
    for (size_t round = 0; round < 20; round++) {
        size_t transient = round * 3;
        for (size_t i = 0; i < LENGTH; i++)
            y[i] = (i < transient ? 3 : 0) + series_uniform(&seed);
        // By definition: the cut d that minimises the sum of squares of the rest over its count
        // squared.
        size_t best = 0;
        double least = INFINITY;
        for (size_t cut = 0; cut <= LENGTH / 2; cut++) {
            double mean = 0, squares = 0, n = (double)(LENGTH - cut);
            for (size_t i = cut; i < LENGTH; i++)
                mean += y[i] / n;
            for (size_t i = cut; i < LENGTH; i++)
                squares += (y[i] - mean) * (y[i] - mean);
            if (squares / (n * n) < least) {
                least = squares / (n * n);
                best = cut;
            }
        }
        assert_int_equal(warm_up_length(y, LENGTH), best);
        assert_in_range(best, transient, transient + 12);
    }
}

// --- the whole judgement -------------------------------------------------------------------------

enum { SAMPLES = 10000 };
enum shape { STEADY, STEP, TREND, WANDERING, STARTING, TAIL_STEP, STALLED };

static void draw(double *values, enum shape shape, gsl_rng *random)
{
    double level = 50;
    for (size_t i = 0; i < SAMPLES; i++) {
        double at = (double)i / SAMPLES;
        if (shape == WANDERING)
            level = fmax(level + gsl_ran_gaussian(random, 1), 5);
        double now = shape == STEP && at >= 0.5      ? 80
                     : shape == TREND                ? 50 * (1 + at)
                     : shape == STARTING && at < 0.1 ? 200
                                                     : level;
        values[i] = now + gsl_ran_exponential(random, 20);
        if (gsl_rng_uniform(random) < 0.03)
            values[i] += shape == TAIL_STEP && at >= 0.5 ? 600 : 150;
        if (shape == STALLED && at > 0.3 && at < 0.303)
            values[i] += 3000;
    }
}

static unsigned judged_stationary(enum shape shape, unsigned rounds, size_t *warm_up)
{
    unsigned stationary = 0;
    double *values = calloc(SAMPLES, sizeof *values);
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, 3);
    for (unsigned round = 0; round < rounds; round++) {
        struct stationarity found;
        struct error err;
        draw(values, shape, random);
        assert_int_equal(stationarity_warm_up(values, SAMPLES, warm_up, &err), 0);
        assert_int_equal(
            stationarity_judge(values + *warm_up, SAMPLES - *warm_up, 0.99, &found, &err), 0);
        assert_true(found.judged);
        stationary += found.stationary;
    }
    gsl_rng_free(random);
    free(values);
    return stationary;
}

static void what_holds_still_is_told_from_what_does_not(void **state)
{
    (void)state;
    size_t warm_up;
    assert_int_equal(judged_stationary(STEADY, 50, &warm_up), 50);
    assert_int_equal(warm_up, 0);
    assert_int_equal(judged_stationary(STALLED, 20, &warm_up), 20); // a stall is no drift
    assert_int_equal(judged_stationary(STEP, 20, &warm_up), 0);
    assert_int_equal(judged_stationary(TREND, 20, &warm_up), 0);
    assert_true(judged_stationary(TAIL_STEP, 20, &warm_up) <= 1);
    assert_in_range(judged_stationary(WANDERING, 20, &warm_up), 0, 4);
    assert_int_equal(judged_stationary(STARTING, 20, &warm_up), 20);
    assert_in_range(warm_up, SAMPLES / 10, SAMPLES / 8);
}

static void few_or_infinite_samples_are_not_judged(void **state)
{
    (void)state;
    static double values[SAMPLES];
    struct stationarity found;
    struct error err;
    size_t warm_up;
    for (size_t i = 0; i < SAMPLES; i++)
        values[i] = i % 3 ? INFINITY : 50; // most were not answered
    assert_int_equal(stationarity_warm_up(values, SAMPLES, &warm_up, &err), 0);
    assert_int_equal(stationarity_judge(values, SAMPLES, 0.99, &found, &err), 0);
    assert_false(found.judged);
    assert_int_equal(stationarity_judge(values, 10, 0.99, &found, &err), 0);
    assert_false(found.judged);
    assert_int_equal(stationarity_judge(values, 0, 0.99, &found, &err), 0);
    assert_false(found.judged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dickey_fuller_matches_statsmodels),
        cmocka_unit_test(critical_values_match_fullers_table),
        cmocka_unit_test(p_matches_mackinnon),
        cmocka_unit_test(what_cannot_be_tested_is_unknown),
        cmocka_unit_test(dickey_fuller_has_its_size_and_power),
        cmocka_unit_test(warm_up_is_what_its_definition_says),
        cmocka_unit_test(what_holds_still_is_told_from_what_does_not),
        cmocka_unit_test(few_or_infinite_samples_are_not_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
