// SPDX-License-Identifier: MIT
//
// Spearman's correlation against scipy and a textbook example; thinning, and its size and power by
// simulation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <gsl/gsl_randist.h>

#include "loadgen/method/method_independence.h"
#include "tests/loadgen/method/method_series.h"

// Reference: scipy 1.10.1, stats.spearmanr(x[:-lag], x[lag:]); values with many ties.
static void correlation_matches_scipy(void **state)
{
    (void)state;
    static const double uniform[3][2] = {{0.056215924771626534, 0.6226604312824877},
                                         {-0.00026158470092721664, 0.9981864469158277},
                                         {0.04471792784016839, 0.6993683318180457}};
    static const double dependent[3][2] = {{0.5815435722156928, 1.908471050113701e-08},
                                           {0.40825752466179865, 0.00020686827460718343},
                                           {0.3491565668958225, 0.0018563597600657707}};
    double x[80], y[80], u[80];
    int32_t x_ranks[80], y_ranks[80], work[160];
    series_fill(x, 80, 3);
    series_fill(u, 80, 1);
    for (size_t i = 0; i < 80; i++) {
        x[i] = floor(x[i] * 12);
        y[i] = i ? 0.6 * y[i - 1] + u[i] - 0.5 : 0;
    }
    for (size_t i = 0; i < 80; i++)
        y[i] = floor(y[i] * 10);
    assert_true(rank_values(x, 80, x_ranks) && rank_values(y, 80, y_ranks));
    for (size_t lag = 1; lag <= 3; lag++) {
        struct rank_correlation found = rank_autocorrelate(x_ranks, 80, lag, work);
        assert_true(series_near(found.rho, uniform[lag - 1][0], 1e-12));
        assert_true(series_near(found.p, uniform[lag - 1][1], 1e-9));
        found = rank_autocorrelate(y_ranks, 80, lag, work);
        assert_true(series_near(found.rho, dependent[lag - 1][0], 1e-12));
        assert_true(series_near(found.p / dependent[lag - 1][1], 1, 1e-6));
    }
}

// Intelligence and hours of television: rho -29/165, p 0.627188 (Wikipedia, "Spearman's rank
// correlation coefficient", from Student's t with 8 degrees of freedom).
static void correlation_matches_a_textbook(void **state)
{
    (void)state;
    static const double quotient[] = {106, 86, 100, 101, 99, 103, 97, 113, 112, 110};
    static const double hours[] = {7, 0, 27, 50, 28, 29, 20, 12, 6, 17};
    static const double alike[10] = {0};
    int32_t quotient_ranks[10], hours_ranks[10], alike_ranks[10];
    assert_true(rank_values(quotient, 10, quotient_ranks) && rank_values(hours, 10, hours_ranks) &&
                rank_values(alike, 10, alike_ranks));
    struct rank_correlation found = rank_correlate(quotient_ranks, hours_ranks, 10);
    assert_true(series_near(found.rho, -29.0 / 165, 1e-12));
    assert_true(series_near(found.p, 0.627188, 1e-6));
    found = rank_correlate(hours_ranks, hours_ranks, 10);
    assert_true(series_near(found.rho, 1, 1e-12) && found.p < 1e-6);
    found = rank_correlate(alike_ranks, hours_ranks, 10);
    assert_true(isnan(found.rho) && isnan(found.p));
    found = rank_correlate(hours_ranks, hours_ranks, 2);
    assert_true(isnan(found.rho));
}

enum { SAMPLES = 20000 };

// An autoregressive series with that correlation between neighbours.
static void judge_many(size_t count, double correlation, size_t least, size_t turn, uint64_t seed,
                       struct independence *found)
{
    double *values = calloc(count, sizeof *values), at = 0;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    struct error err;
    gsl_rng_set(random, seed);
    for (size_t i = 0; i < count; i++) {
        at = correlation * at + gsl_ran_gaussian(random, 1);
        values[i] = exp(at); // ranks do not care
    }
    assert_int_equal(independence_judge(values, count, least, turn, found, &err), 0);
    assert_true(found->judged);
    gsl_rng_free(random);
    free(values);
}

static void judge(double correlation, size_t least, size_t turn, uint64_t seed,
                  struct independence *found)
{
    judge_many(SAMPLES, correlation, least, turn, seed, found);
}

// Where a glance shows that a thinning is not enough, the others are not looked at; of the last one
// that there is, what it shows is told.
static void a_long_series_is_thinned_by_glances(void **state)
{
    (void)state;
    enum { LONG = 1200000 };
    struct independence found;
    judge_many(LONG, 0.9, 400, 16, 1, &found);
    assert_true(found.independent);
    assert_in_range(found.thinning, 15, 53);
    assert_true(fabs(found.thinned[0].rho) < 0.15);
    judge_many(LONG, 0.9995, 36888, 16, 1, &found);
    assert_false(found.independent);
    assert_int_equal(found.thinning, 23);
    assert_true(found.kept == LONG / 23 + 1 && found.thinned[0].rho > 0.95);
    assert_true(found.thinned[2].rho < found.unthinned[2].rho);
}

static void dependent_samples_are_thinned(void **state)
{
    (void)state;
    struct independence found;
    unsigned unthinned = 0;
    for (unsigned seed = 1; seed <= 50; seed++) {
        judge(0, 400, 16, seed, &found);
        assert_true(found.independent);
        unthinned += found.thinning == 1;
    }
    assert_true(unthinned >= 49);
    for (unsigned seed = 1; seed <= 20; seed++) {
        judge(0.9, 400, 16, seed, &found); // 0.05 at lag 28
        assert_true(found.independent);
        assert_in_range(found.thinning, 15, 53);
        assert_true(found.unthinned[0].rho > 0.85 && found.unthinned[0].p < 1e-9);
        assert_true(fabs(found.thinned[0].rho) < 0.15);
        assert_int_equal(found.kept, (SAMPLES + found.thinning - 1) / found.thinning);
        judge(0.9995, 400, 16, seed, &found); // not to be thinned with so few
        assert_false(found.independent);
        assert_true(found.thinning > 20 && found.kept >= 400);
    }
}

static void thinning_keeps_out_of_step_with_the_connections(void **state)
{
    (void)state;
    struct independence found;
    static const size_t turns[] = {3, 5, 9, 15, 45, 135, 16};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        judge(0.7, 400, turns[i], 4, &found);
        assert_true(found.independent && found.thinning > 1);
        assert_true(turns[i] % found.thinning != 0 && found.thinning % 2 == 1);
    }
}

static void few_alike_or_infinite_samples_are_survived(void **state)
{
    (void)state;
    static double values[1000];
    struct independence found;
    struct error err;
    assert_int_equal(independence_judge(values, 0, 400, 1, &found, &err), 0);
    assert_false(found.judged);
    assert_int_equal(independence_judge(values, 399, 400, 1, &found, &err), 0);
    assert_false(found.judged);
    assert_int_equal(found.thinning, 1);
    assert_int_equal(independence_judge(values, 1000, 400, 1, &found, &err), 0);
    assert_true(found.judged && found.independent); // all alike
    for (size_t i = 0; i < 1000; i++)
        values[i] = i >= 500 ? INFINITY : 1;
    assert_int_equal(independence_judge(values, 1000, 100, 1, &found, &err), 0);
    assert_true(found.judged && !found.independent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(correlation_matches_scipy),
        cmocka_unit_test(correlation_matches_a_textbook),
        cmocka_unit_test(dependent_samples_are_thinned),
        cmocka_unit_test(a_long_series_is_thinned_by_glances),
        cmocka_unit_test(thinning_keeps_out_of_step_with_the_connections),
        cmocka_unit_test(few_alike_or_infinite_samples_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
