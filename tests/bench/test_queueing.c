// SPDX-License-Identifier: MIT
//
// The queueing theory that the truth benchmark measures against, itself checked: against Erlang's
// series for M/D/1 in long double, against the means and second moments of Pollaczek, Khinchine and
// Takacs, against closed forms, and against a simulation of Lindley's recursion.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include "tests/bench/queueing.h"

// cmocka's own takes floats.
#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

// A. K. Erlang, "The theory of probabilities and telephone conversations", 1909: P(waiting <= t)
// = (1 - rho) sum over k <= t / D of (lambda (k D - t))^k / k! exp(-lambda (k D - t)). The terms
// alternate and grow, so t must stay moderate.
static double erlang(double rate, double service, double t)
{
    long double sum = 0;
    for (int k = 0; k * service <= t; k++) {
        long double x = (long double)rate * (k * (long double)service - (long double)t), term = 1;
        for (int i = 1; i <= k; i++)
            term *= x / i;
        sum += term * expl(-x);
    }
    return (double)((1 - (long double)rate * (long double)service) * sum);
}

static void one_service_time_follows_erlang(void **state)
{
    (void)state;
    for (double load = 0.1; load < 0.95; load += 0.1) {
        struct queue queue = queue_discrete(load / 100, 100, 200, 0, 4000);
        assert_non_null(queue.waiting);
        for (double t = 0; t < 1500; t += 12.5)
            assert_near(queue_waiting(&queue, t), erlang(load / 100, 100, t), 2e-5);
        queue_close(&queue);
    }
}

// P(W <= t) = (1 - rho) e^(lambda t) below D, and no state of the queue beyond.
static void before_the_first_service_ends_it_is_an_exponential(void **state)
{
    (void)state;
    struct queue queue = queue_discrete(0.008, 100, 200, 0, 4000);
    assert_near(queue_waiting(&queue, 0), 0.2, 1e-12);
    assert_near(queue_waiting(&queue, 50), 0.2 * exp(0.4), 1e-6);
    assert_near(queue_waiting(&queue, 100), 0.2 * exp(0.8), 1e-6);
    assert_near(queue_sojourn(&queue, 99.9), 0, 1e-12);
    assert_near(queue_sojourn(&queue, 100), 0.2, 1e-12);
    queue_close(&queue);
}

// The first two moments of the waiting time of M/G/1: lambda E S^2 / 2 (1 - rho) (Pollaczek 1930,
// Khinchine 1932), and 2 E[W]^2 + lambda E S^3 / 3 (1 - rho) (Takacs 1962).
static void two_service_times_have_the_moments_of_theory(void **state)
{
    (void)state;
    const double shorter = 50, longer = 550, probability = 0.1;
    for (double load = 0.2; load < 0.85; load += 0.2) {
        double rate = load / 100, mean = 0, square = 0;
        struct queue queue = queue_discrete(rate, shorter, longer, probability, 60000);
        for (size_t n = 0; n + 1 < queue.count; n++) {
            double tail = 1 - (queue.waiting[n] + queue.waiting[n + 1]) / 2;
            mean += tail * queue.step;
            square += 2 * ((double)n + 0.5) * queue.step * tail * queue.step;
        }
        double second = 0.9 * shorter * shorter + 0.1 * longer * longer;
        double third = 0.9 * pow(shorter, 3) + 0.1 * pow(longer, 3);
        double wanted = rate * second / (2 * (1 - load));
        double wanted_square = 2 * wanted * wanted + rate * third / (3 * (1 - load));
        assert_near(queue_mean_service(&queue), 100, 1e-9);
        assert_near(mean / wanted, 1, 1e-3);
        assert_near(square / wanted_square, 1, 1e-3);
        queue_close(&queue);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void two_service_times_follow_a_simulation(void **state)
{
    (void)state;
    enum { REQUESTS = 2000000 };
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    double *sojourns = malloc(REQUESTS * sizeof *sojourns), waiting = 0;
    struct queue queue = queue_discrete(0.006, 50, 550, 0.1, 20000);
    for (size_t i = 0; i < REQUESTS; i++) {
        double service = gsl_rng_uniform(random) < 0.1 ? 550 : 50;
        sojourns[i] = waiting + service;
        waiting = fmax(0, sojourns[i] - gsl_ran_exponential(random, 1 / 0.006));
    }
    qsort(sojourns, REQUESTS, sizeof *sojourns, compare);
    const double none = 0;
    for (double q = 0.1; q < 0.995; q += 0.1) {
        double exact = queue_quantile(&queue, &none, 1, q);
        assert_near(sojourns[(size_t)(q * REQUESTS)] / exact, 1, 0.03);
    }
    assert_near(sojourns[(size_t)(0.99 * REQUESTS)] / queue_quantile(&queue, &none, 1, 0.99), 1,
                0.03);
    queue_close(&queue);
    gsl_rng_free(random);
    free(sojourns);
}

static void quantiles_of_exponential_service_are_closed_forms(void **state)
{
    (void)state;
    const double none = 0, two[] = {10, 30};
    struct queue queue = queue_exponential(0.005, 100);
    assert_near(queue_quantile(&queue, &none, 1, 0.5), log(2) * 200, 1e-4);
    assert_near(queue_quantile(&queue, &none, 1, 0.99), log(100) * 200, 1e-4);
    // With an overhead of 10 or 30: e^(-x/200) (e^(10/200) + e^(30/200)) / 2 = 0.01.
    double x = 200 * log((exp(0.05) + exp(0.15)) / 2 / 0.01);
    assert_near(queue_quantile(&queue, two, 2, 0.99), x, 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_service_time_follows_erlang),
        cmocka_unit_test(before_the_first_service_ends_it_is_an_exponential),
        cmocka_unit_test(two_service_times_have_the_moments_of_theory),
        cmocka_unit_test(two_service_times_follow_a_simulation),
        cmocka_unit_test(quantiles_of_exponential_service_are_closed_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
