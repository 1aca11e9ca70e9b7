// SPDX-License-Identifier: MIT
//
// Percentile shifts of simulated runs whose truth is known, and the gates' rules. The calibration
// in full is `make bench BENCH=gate`.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/analysis/compare/simulated_runs.h"

static const struct simulation five = {
    .runs = 5, .requests = 8000, .between = 0.005, .within = 0.05, .quantile = 0.9, .limit = 0.05};

// All requests of all runs the same: no scatter, an exact shift, an interval of no width.
static void equal_requests_have_no_scatter(void **state)
{
    (void)state;
    struct latency_run_array runs[COMPARE_SIDES] = {{0}, {0}};
    struct latency_set *sets[COMPARE_SIDES];
    struct percentile_shift shift;
    struct error err;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        for (int r = 0; r < 3; r++) {
            assert_int_equal(array_push(&runs[side], (struct latency_run){0}), 0);
            for (int i = 0; i < 2000; i++)
                assert_int_equal(array_push(&runs[side].items[r], side ? 125000.0 : 100000.0), 0);
        }
        assert_int_equal(latency_set_make(&runs[side], &sets[side], &err), 0);
    }
    const struct latency_set *const sides[COMPARE_SIDES] = {sets[0], sets[1]};
    percentile_shift(sides, 0.99, 0.99, &shift);
    assert_true(shift.known && shift.interval.between_runs);
    assert_true(fabs(shift.shift - 0.25) < 1e-12);
    assert_true(fabs(shift.interval.low - 0.25) < 1e-3 && fabs(shift.interval.high - 0.25) < 1e-3);
    // 6,000 requests have six beyond p99.9: too few.
    percentile_shift(sides, 0.999, 0.99, &shift);
    assert_false(shift.known);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        latency_set_free(sets[side]);
        for (int r = 0; r < 3; r++)
            array_free(&runs[side].items[r]);
        array_free(&runs[side]);
    }
}

static void unanswered_requests_are_never_a_number(void **state)
{
    (void)state;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    struct latency_run_array runs[COMPARE_SIDES] = {{0}, {0}};
    struct latency_set *sets[COMPARE_SIDES];
    struct percentile_shift shift;
    struct error err;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        for (int r = 0; r < 2; r++) {
            assert_int_equal(array_push(&runs[side], (struct latency_run){0}), 0);
            simulate_run(random, &five, 1, &runs[side].items[r]);
            for (int i = 0; side == COMPARE_CANDIDATE && i < 8000; i += 50)
                runs[side].items[r].items[i] = INFINITY; // 2 %
        }
        assert_int_equal(latency_set_make(&runs[side], &sets[side], &err), 0);
    }
    const struct latency_set *const sides[COMPARE_SIDES] = {sets[0], sets[1]};
    percentile_shift(sides, 0.99, 0.99, &shift);
    assert_false(shift.known);
    assert_true(shift.never[COMPARE_CANDIDATE] && !shift.never[COMPARE_BASE]);
    percentile_shift(sides, 0.9, 0.99, &shift);
    assert_true(shift.known);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        latency_set_free(sets[side]);
        for (int r = 0; r < 2; r++)
            array_free(&runs[side].items[r]);
        array_free(&runs[side]);
    }
    gsl_rng_free(random);
}

// The same runs give the same interval to the last digit; one run a side says so.
static void comparisons_repeat_exactly(void **state)
{
    (void)state;
    struct percentile_shift shifts[2];
    struct simulation plan = five;
    for (int i = 0; i < 2; i++) {
        gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
        gsl_rng_set(random, 4);
        simulate_shift(random, &plan, &shifts[i]);
        gsl_rng_free(random);
    }
    assert_true(shifts[0].interval.low == shifts[1].interval.low);
    assert_true(shifts[0].interval.high == shifts[1].interval.high);
    plan.runs = 1;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    simulate_shift(random, &plan, &shifts[0]);
    gsl_rng_free(random);
    assert_true(shifts[0].known && !shifts[0].interval.between_runs);
}

static void equal_builds_are_green_and_slower_ones_red(void **state)
{
    (void)state;
    struct simulation plan = five;
    struct simulated_outcomes same = simulate(&plan, 60, 1);
    print_message("equal builds: %d red, %d inconclusive, %d covered of %d\n", same.red,
                  same.inconclusive, same.covered, same.trials);
    assert_true(same.red <= 1 && same.covered >= 56 && same.inconclusive <= 5);
    plan.shift = 0.1;
    struct simulated_outcomes slower = simulate(&plan, 40, 2);
    print_message("+10 %%: %d red, %d covered of %d\n", slower.red, slower.covered, slower.trials);
    assert_true(slower.red >= 38 && slower.covered >= 37);
    // Where runs differ by 5 % each, five of them cannot tell, and must not claim to.
    plan.shift = 0;
    plan.between = 0.05;
    same = simulate(&plan, 40, 3);
    print_message("equal builds, 5 %% between runs: %d red, %d inconclusive of %d\n", same.red,
                  same.inconclusive, same.trials);
    assert_true(same.red <= 1 && same.inconclusive >= 20);
}

static void the_rules_of_gates(void **state)
{
    (void)state;
    assert_int_equal(gate_judge_increase(0.10, 0.04, 0.16, 0.05), GATE_FAILED);
    assert_int_equal(gate_judge_increase(0.10, -0.01, 0.21, 0.05), GATE_INCONCLUSIVE); // not sure
    assert_int_equal(gate_judge_increase(0.04, 0.01, 0.07, 0.05), GATE_PASSED); // sure, but small
    assert_int_equal(gate_judge_increase(0.00, -0.04, 0.04, 0.05), GATE_PASSED);
    assert_int_equal(gate_judge_increase(0.00, -0.20, 0.25, 0.05), GATE_INCONCLUSIVE);
    assert_int_equal(gate_judge_increase(-0.30, -0.50, 0.01, 0.05), GATE_PASSED); // surely below
    assert_int_equal(gate_judge_absolute(110, 130, 100), GATE_FAILED);
    assert_int_equal(gate_judge_absolute(80, 95, 100), GATE_PASSED);
    assert_int_equal(gate_judge_absolute(80, 130, 100), GATE_INCONCLUSIVE);
    assert_true(gate_confidence(1) == 0.99 && gate_confidence(4) == 0.9975);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_requests_have_no_scatter),
        cmocka_unit_test(unanswered_requests_are_never_a_number),
        cmocka_unit_test(comparisons_repeat_exactly),
        cmocka_unit_test(equal_builds_are_green_and_slower_ones_red),
        cmocka_unit_test(the_rules_of_gates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
