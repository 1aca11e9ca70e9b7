// SPDX-License-Identifier: MIT
//
// Runs with known percentiles for the calibration of comparisons: requests with lognormal latencies
// whose level wanders within a run, as that of a queue does, and differs between runs, as that of
// builds, boots and memory layouts does.
#ifndef TESTS_ANALYSIS_COMPARE_SIMULATED_RUNS_H
#define TESTS_ANALYSIS_COMPARE_SIMULATED_RUNS_H

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>

#include "analysis/compare/gates.h"
#include "analysis/compare/percentile_shift.h"

struct simulation {
    size_t runs;     // a side
    size_t requests; // a run
    double between;  // standard deviation of the runs' levels, of their logarithm
    double within;   // the same of the wandering within a run
    double tail;     // how often a run is an outlier: its level scatters five times as much
    double shift;    // of the candidate's latencies: 0.1 is 10 % more
    double quantile;
    double limit; // the gate's: 0.05 is at most 5 % more
};

static inline void simulate_run(gsl_rng *random, const struct simulation *plan, double factor,
                                struct latency_run *out)
{
    enum { REMEMBERED = 50 }; // requests over which the wandering forgets
    double memory = exp(-1.0 / REMEMBERED), wander = 0;
    double spread = plan->between * (gsl_rng_uniform(random) < plan->tail ? 5 : 1);
    double level = log(100000 * factor) + gsl_ran_gaussian_ziggurat(random, spread);
    out->count = 0;
    if (array_reserve(out, plan->requests) < 0)
        abort();
    for (size_t i = 0; i < plan->requests; i++) {
        wander = memory * wander +
                 gsl_ran_gaussian_ziggurat(random, plan->within * sqrt(1 - memory * memory));
        out->items[out->count++] = exp(level + wander + gsl_ran_gaussian_ziggurat(random, 0.5));
    }
}

// One comparison of two sets of runs.
static inline void simulate_shift(gsl_rng *random, const struct simulation *plan,
                                  struct percentile_shift *out)
{
    struct latency_set *sets[COMPARE_SIDES];
    struct error err;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        struct latency_run_array runs = {0};
        double factor = side == COMPARE_CANDIDATE ? 1 + plan->shift : 1;
        for (size_t r = 0; r < plan->runs; r++) {
            if (array_push(&runs, (struct latency_run){0}) < 0)
                abort();
            simulate_run(random, plan, factor, &runs.items[r]);
        }
        if (latency_set_make(&runs, &sets[side], &err) < 0)
            abort();
        for (size_t r = 0; r < plan->runs; r++)
            array_free(&runs.items[r]);
        array_free(&runs);
    }
    const struct latency_set *const sides[COMPARE_SIDES] = {sets[0], sets[1]};
    percentile_shift(sides, plan->quantile, gate_confidence(1), out);
    latency_set_free(sets[0]);
    latency_set_free(sets[1]);
}

struct simulated_outcomes {
    int trials, red, inconclusive, covered; // covered: intervals that hold the true shift
};

static inline struct simulated_outcomes simulate(const struct simulation *plan, int trials,
                                                 unsigned long seed)
{
    struct simulated_outcomes outcomes = {.trials = trials};
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, seed);
    for (int i = 0; i < trials; i++) {
        struct percentile_shift shift;
        simulate_shift(random, plan, &shift);
        enum gate_outcome outcome =
            gate_judge_increase(shift.shift, shift.interval.low, shift.interval.high, plan->limit);
        outcomes.red += outcome == GATE_FAILED;
        outcomes.inconclusive += outcome == GATE_INCONCLUSIVE;
        outcomes.covered += shift.interval.low <= plan->shift && shift.interval.high >= plan->shift;
    }
    gsl_rng_free(random);
    return outcomes;
}

#endif
