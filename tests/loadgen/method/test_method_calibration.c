// SPDX-License-Identifier: MIT
//
// How often the method errs, by simulation with fixed seeds: runs of 2 s at 10,000 requests/s whose
// latencies are healthy, in the ways that servers and machines are, must seldom be refused; runs
// that drift, step or wander must be. Also whether the interval of p99 covers the truth as often as
// it says. CALIBRATION_RUNS=200 prints the table of docs/method.md; the test itself makes fewer.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <gsl/gsl_randist.h>

#include "base/quantile.h"
#include "loadgen/method/method.h"

enum { REQUESTS = 20000, RATE = 10000, TRUTH_RUNS = 60, RUNS = 8 };

// What makes the latency, beside a constant 25 us and noise around 15 us.
struct shape {
    const char *name;
    double utilisation; // of a queue with one server, M/M/1
    double correlation; // of a level that wanders and returns: of one request's with the next's
    double stalls;      // a second; each holds the machine for 5 to 50 ms
    double levels;      // two levels so far apart, each held for 0.3 s on average
    double drift;       // the level's growth over the run
    double step, step_at;
    double tail_step;   // of p99 alone, in the second half
    double walk;        // a level that does not return
    double warm_up;     // the level's factor in the first tenth
    double least, most; // the share of runs that may be refused
    double covers;      // the share of intervals that must cover the truth; 0: it has none
};

static const struct shape shapes[] = {
    {.name = "independent", .most = 0.03, .covers = 0.9},
    {.name = "wandering level, 10 ms", .correlation = 0.99, .most = 0.03, .covers = 0.9},
    {.name = "wandering level, 100 ms", .correlation = 0.999, .most = 0.06, .covers = 0.75},
    {.name = "M/M/1, 20 %", .utilisation = 0.2, .most = 0.03, .covers = 0.9},
    {.name = "M/M/1, 50 %", .utilisation = 0.5, .most = 0.03, .covers = 0.9},
    {.name = "M/M/1, 80 %", .utilisation = 0.8, .most = 0.03, .covers = 0.75},
    {.name = "stalls of 5-50 ms, one in four seconds", .stalls = 0.25, .most = 0.03},
    {.name = "stalls of 5-50 ms, one a second", .stalls = 1, .most = 0.15, .covers = 0.5},
    {.name = "stalls of 5-50 ms, five a second", .stalls = 5, .most = 1, .covers = 0.85},
    {.name = "two levels 20 % apart", .levels = 0.2, .most = 0.03},
    {.name = "two levels 35 % apart", .levels = 0.35, .most = 0.05},
    {.name = "warm-up, four times as slow", .warm_up = 4, .most = 0.05},
    {.name = "drift of 10 %", .drift = 0.1, .most = 0.03},
    {.name = "drift of 20 %", .drift = 0.2, .most = 0.05},
    {.name = "drift of 50 %", .drift = 0.5, .least = 0.95, .most = 1},
    {.name = "drift of 100 %", .drift = 1, .least = 0.99, .most = 1},
    {.name = "drift of 100 %, M/M/1, 50 %",
     .drift = 1,
     .utilisation = 0.5,
     .least = 0.95,
     .most = 1},
    {.name = "drift of 100 %, stalls of 5-50 ms, one a second",
     .drift = 1,
     .stalls = 1,
     .least = 0.95,
     .most = 1},
    {.name = "step of 50 % in the middle", .step = 0.5, .step_at = 0.5, .least = 0.95, .most = 1},
    {.name = "step of 50 % after three quarters",
     .step = 0.5,
     .step_at = 0.75,
     .least = 0.9,
     .most = 1},
    {.name = "step of p99 to four times", .tail_step = 4, .least = 0.85, .most = 1},
    {.name = "a level that does not return", .walk = 0.01, .least = 0.8, .most = 1},
};

// Where the state of one run's latencies stands.
struct world {
    const struct shape *shape;
    gsl_rng *random;
    double wave, walk, backlog_us, stalled_until_s, switch_at_s;
    bool high;
};

static double level_of(struct world *world, double at_s)
{
    const struct shape *shape = world->shape;
    double fraction = at_s * RATE / REQUESTS, level = 1 + shape->drift * fraction;
    if (shape->step > 0 && fraction >= shape->step_at)
        level *= 1 + shape->step;
    if (shape->warm_up > 0 && fraction < 0.1)
        level *= shape->warm_up;
    if (shape->correlation > 0) {
        double rho = shape->correlation;
        world->wave =
            rho * world->wave + gsl_ran_gaussian(world->random, 0.15 * sqrt(1 - rho * rho));
        level *= exp(world->wave);
    }
    if (shape->walk > 0) {
        world->walk += gsl_ran_gaussian(world->random, shape->walk);
        level *= exp(world->walk);
    }
    if (shape->levels > 0) {
        if (at_s >= world->switch_at_s) {
            world->high = !world->high;
            world->switch_at_s = at_s + gsl_ran_exponential(world->random, 0.3);
        }
        level *= world->high ? 1 + shape->levels : 1;
    }
    return level;
}

static double latency_us(struct world *world, double at_s, double gap_us)
{
    const struct shape *shape = world->shape;
    double level = level_of(world, at_s);
    double us = 25 + gsl_ran_lognormal(world->random, log(15), 0.3);
    if (gsl_rng_uniform(world->random) < 0.02)
        us *= shape->tail_step > 0 && at_s * RATE > REQUESTS / 2 ? shape->tail_step : 1;
    if (shape->utilisation > 0) { // Lindley's recurrence
        world->backlog_us = fmax(world->backlog_us - gap_us, 0) +
                            gsl_ran_exponential(world->random, shape->utilisation * 1e6 / RATE);
        us = 25 + world->backlog_us;
    }
    if (shape->stalls > 0) {
        if (gsl_rng_uniform(world->random) < shape->stalls / RATE)
            world->stalled_until_s = at_s + gsl_ran_flat(world->random, 0.005, 0.05);
        us += fmax(world->stalled_until_s - at_s, 0) * 1e6;
    }
    return us * level;
}

// A TSC of 1 GHz: ticks are ns. A send costs 1 us.
static void make(const struct shape *shape, struct sample *samples, gsl_rng *random)
{
    struct world world = {.shape = shape, .random = random};
    double due_ns = 0;
    uint64_t free_at = 0;
    world.wave = gsl_ran_gaussian(random, 0.15);
    world.switch_at_s = gsl_ran_exponential(random, 0.3);
    for (size_t i = 0; i < REQUESTS; i++) {
        double gap_ns = gsl_ran_exponential(random, 1e9 / RATE);
        due_ns += gap_ns;
        struct sample *sample = &samples[i];
        memset(sample, 0, sizeof *sample);
        sample->intended_tsc = 1000000000 + (uint64_t)due_ns;
        sample->send_tsc = sample->intended_tsc > free_at ? sample->intended_tsc : free_at;
        sample->sent_tsc = free_at = sample->send_tsc + 1000;
        sample->tx_ns = sample->send_tsc + 500;
        sample->tx_source = STAMP_SOFTWARE;
        sample->reply_tsc =
            sample->intended_tsc + (uint64_t)(1e3 * latency_us(&world, due_ns / 1e9, gap_ns / 1e3));
        sample->rx_ns = sample->reply_tsc - 500;
        sample->rx_source = STAMP_SOFTWARE;
    }
}

static double true_p99(const struct shape *shape, struct sample *samples, gsl_rng *random)
{
    double *values = malloc(sizeof *values * REQUESTS * TRUTH_RUNS);
    for (size_t run = 0; run < TRUTH_RUNS; run++) {
        make(shape, samples, random);
        for (size_t i = 0; i < REQUESTS; i++)
            values[run * REQUESTS + i] =
                (double)(samples[i].reply_tsc - samples[i].intended_tsc) / 1e3;
    }
    quantile_sort(values, REQUESTS * TRUTH_RUNS);
    double p99 = quantile_sorted(values, REQUESTS * TRUTH_RUNS, 0.99);
    free(values);
    return p99;
}

struct score {
    unsigned refused, by[METHOD_CHECKS], covered, bounded;
};

static struct score judge(const struct shape *shape, unsigned runs)
{
    static const struct method_settings settings = {
        .quantile = 0.99,
        .confidence = 0.95,
        .arrivals = {.kind = DISTRIBUTION_EXPONENTIAL, .first = 1},
        .rate = RATE,
        .turn = 16};
    struct score score = {0};
    struct sample *samples = calloc(REQUESTS, sizeof *samples);
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(random, 7);
    double truth = shape->covers > 0 ? true_p99(shape, samples, random) : NAN;
    for (unsigned run = 0; run < runs; run++) {
        struct method method;
        struct error err;
        make(shape, samples, random);
        const struct engine_result result = {
            .samples = samples, .sample_count = REQUESTS, .tsc_hz = 1e9, .start_tsc = 1000000000};
        assert_int_equal(method_judge(&result, &settings, true, 0.5, &method, &err), 0);
        score.refused += method.reason_count > 0;
        for (unsigned check = 0; check < METHOD_CHECKS; check++)
            score.by[check] += method.findings[check] == METHOD_FAILED;
        const struct quantile_interval *interval = &method.interval.interval;
        score.bounded += interval->known;
        score.covered += interval->known && interval->low <= truth && truth <= interval->high;
    }
    gsl_rng_free(random);
    free(samples);
    return score;
}

static const char *percent_or_dash(bool known, double share, char text[20])
{
    snprintf(text, 20, known ? "%.0f %%" : "–", 100 * share);
    return text;
}

static void it_errs_as_seldom_as_it_says(void **state)
{
    (void)state;
    const char *asked = getenv("CALIBRATION_RUNS");
    unsigned runs = asked ? (unsigned)strtoul(asked, NULL, 10) : 0, failures = 0;
    bool table = runs > 0;
    char text[20];
    if (!table)
        runs = RUNS;
    if (table)
        printf("| latency | n/a | stationarity | independence | covered |\n"
               "|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *shape = &shapes[i];
        struct score score = judge(shape, runs);
        double all = runs;
        if (table)
            printf("| %s | %.1f %% | %.1f %% | %.1f %% | %s |\n", shape->name,
                   100 * score.refused / all, 100 * score.by[METHOD_STATIONARITY] / all,
                   100 * score.by[METHOD_INDEPENDENCE] / all,
                   percent_or_dash(shape->covers > 0, score.covered / all, text));
        // Three standard deviations of so many runs' scatter.
        double least = shape->least - 3 * sqrt(shape->least * (1 - shape->least) / all);
        double most = shape->most + 3 * sqrt(shape->most * (1 - shape->most) / all);
        bool wrong = score.refused < least * all || score.refused > most * all;
        bool narrow =
            shape->covers &&
            score.covered < (shape->covers - 3 * sqrt(shape->covers * (1 - shape->covers) / all)) *
                                score.bounded;
        if (wrong || narrow)
            fprintf(stderr, "%s: %u of %u refused, %u of %u intervals cover p99\n", shape->name,
                    score.refused, runs, score.covered, score.bounded);
        failures += wrong || narrow;
    }
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_errs_as_seldom_as_it_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
