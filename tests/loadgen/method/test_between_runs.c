// SPDX-License-Identifier: MIT
//
// Spreads between repetitions whose truth is known: drawn from one distribution, or from several.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "loadgen/method/between_runs.h"
#include "tests/loadgen/method/method_series.h"

enum { SAMPLES = 3000, RUNS = 5 };

// A repetition's percentile of exponential latencies with this mean.
static struct repetition repeat(double mean, double q, uint64_t *state)
{
    double values[SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++)
        values[i] = -mean * log(1 - series_uniform(state));
    quantile_sort(values, SAMPLES);
    return (struct repetition){quantile_sorted(values, SAMPLES, q),
                               quantile_interval_sorted(values, SAMPLES, q, 0.95)};
}

static unsigned alarms(double q, double shift, unsigned trials)
{
    uint64_t state = 42;
    unsigned count = 0;
    for (unsigned trial = 0; trial < trials; trial++) {
        struct repetition runs[RUNS];
        struct between_runs found;
        for (unsigned i = 0; i < RUNS; i++)
            runs[i] = repeat(100 * (i == 3 ? 1 + shift : 1), q, &state);
        between_runs_judge(runs, RUNS, 0.95, &found);
        assert_true(found.judged);
        count += found.exceeds;
    }
    return count;
}

// 5 % of cases, if the intervals were exact; they are a little wider than their confidence.
static void chance_within_runs_is_no_alarm(void **state)
{
    (void)state;
    assert_in_range(alarms(0.5, 0, 400), 2, 32);
    assert_in_range(alarms(0.99, 0, 400), 0, 32);
}

static void a_level_of_its_own_is_seen(void **state)
{
    (void)state;
    // A median's standard error is 1.8 % here, a p99's 3.9 %.
    assert_true(alarms(0.5, 0.15, 100) >= 95);
    assert_true(alarms(0.99, 0.35, 100) >= 95);
}

static void figures_are_exact(void **state)
{
    (void)state;
    struct between_runs found;
    double half = 1.959963984540054; // one standard error of 1
    struct repetition runs[3];
    for (unsigned i = 0; i < 3; i++)
        runs[i] =
            (struct repetition){10 + 3.0 * i, {.known = true, .low = 10 - half, .high = 10 + half}};
    between_runs_judge(runs, 3, 0.95, &found);
    assert_true(found.low == 10 && found.high == 16 && found.spread == 6 && found.count == 3);
    assert_true(series_near(found.within, 1, 1e-9));
    assert_true(series_near(found.statistic, 18, 1e-9));
    assert_true(series_near(found.p, exp(-9), 1e-12)); // two degrees of freedom
    assert_true(series_near(found.between, sqrt(8), 1e-9));
    assert_true(found.exceeds);
}

static void what_is_not_known_does_not_count(void **state)
{
    (void)state;
    struct between_runs found;
    struct repetition runs[] = {{5, {true, 4, 6}},
                                {INFINITY, {true, 5, INFINITY}},
                                {7, {.known = false}},
                                {NAN, {.known = false}}};
    between_runs_judge(runs, 4, 0.95, &found);
    assert_int_equal(found.count, 1);
    assert_false(found.judged || found.exceeds);
    assert_true(found.low == 5 && found.high == 5);
    between_runs_judge(runs, 0, 0.95, &found);
    assert_true(isnan(found.low) && found.count == 0);
    // Latencies without any variation at all.
    struct repetition still[] = {{5, {true, 5, 5}}, {5, {true, 5, 5}}};
    between_runs_judge(still, 2, 0.95, &found);
    assert_true(found.judged && !found.exceeds && found.p == 1);
    still[1] = (struct repetition){6, {true, 6, 6}};
    between_runs_judge(still, 2, 0.95, &found);
    assert_true(found.exceeds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chance_within_runs_is_no_alarm),
        cmocka_unit_test(a_level_of_its_own_is_seen),
        cmocka_unit_test(figures_are_exact),
        cmocka_unit_test(what_is_not_known_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
