// SPDX-License-Identifier: MIT
//
// Is what `taillight load` reports true? labserver, whose service time is known, as M/D/1, M/M/1
// and M/G/1 (bimodal) at 20 to 80 % load: the measured p50 and p99 against the exact ones.
//
// Between the intended time and the reply lies also what is neither waiting nor service: the
// client's send, the wire twice, the client's receive. Its distribution is measured in every round
// at every rate (caches are warmer at a higher one) with evenly spaced requests and a service so
// short that none meets another: latency minus service. As it is independent of the queue, theory's
// latency is the sum of the two: the queue's sojourn convolved with the measured overhead.
//
// A run's samples are not independent (a busy period slows all in it), so an interval comes from
// the rounds, which are: Student's t of their percentiles.
//
//     BENCH_ROUNDS (5), BENCH_SECONDS (8)     writes $BUILD/bench/truth.json and truth.svg
#include <gsl/gsl_cdf.h>

#include "base/array.h"
#include "base/tsc_rate.h"
#include "tests/bench/bench.h"
#include "tests/bench/queueing.h"
#include "tests/bench/truth_plot.h"

enum {
    PORT = 22411,
    LOADS = 4,
    SYSTEMS = 3,
    QUANTILES = 2,
    OVERHEAD_SERVICE_US = 25, // more than the server's own work, and far less than a gap
    OVERHEAD_POINTS = 200,    // of its distribution, for the convolution
    CONNECTIONS = 128,        // with one request each, so that the server sees the order of arrival
    CURVE_POINTS = 33,
};

// The mean of all three. A virtual machine stands still for a millisecond or two now and then; with
// services much shorter than that, p99 is the queue that follows it, which no theory here knows.
static const double service_us = 1000;
static const double shorter_us = 500, longer_us = 5500, longer_share = 0.1;
static const double loads[LOADS] = {0.2, 0.4, 0.6, 0.8};
static const double quantiles[QUANTILES] = {0.5, 0.99};
static const char *const quantile_names[QUANTILES] = {"p50", "p99"};

static const struct {
    const char *name, *key, *service;
} systems[SYSTEMS] = {{"M/D/1", "md1", "fixed:1ms"},
                      {"M/M/1", "mm1", "exponential:1ms"},
                      {"M/G/1, bimodal", "mg1", "bimodal:500us,5500us,0.1"}};

struct values ARRAY_OF(double);

struct point {
    struct values pooled;
    double rounds[QUANTILES][BENCH_ROUNDS_MAX];
};

struct bench {
    struct bench_lab lab;
    struct bench_metrics metrics;
    struct point points[SYSTEMS][LOADS];
    struct values overhead[LOADS]; // us
    double ticks_per_us;
    double seconds;
    int rounds;
};

static struct queue theory(int system, double load)
{
    double rate = load / service_us;
    if (system == 1)
        return queue_exponential(rate, service_us);
    return system == 0
               ? queue_discrete(rate, service_us, 2 * service_us, 0, 200 * service_us)
               : queue_discrete(rate, shorter_us, longer_us, longer_share, 500 * service_us);
}

// One run; appends its latencies (us, from the intended time) less `minus_us`.
static void run_load(struct bench *bench, const char *service, double rate, const char *arrivals,
                     int seed, double minus_us, struct values *out)
{
    struct process server;
    struct bench_command command;
    static struct bench_outcome outcome;
    struct log_reader reader;
    bench_command(&command, "%s/labserver --port %d --protocol lab --exact --seed %d --service %s",
                  bench_build(), PORT, seed, service);
    bench_serve(&bench->lab, &server, PORT, &command);
    bench_command(&command,
                  "%s/taillight load --server %s:%d --protocol lab --rate %.3f --arrivals %s "
                  "--connections %d --depth 1 --duration %.3fs --stamps user --seed %d --samples "
                  "%s --json --quiet",
                  bench_build(), bench_server_address(&bench->lab), PORT, rate, arrivals,
                  CONNECTIONS, bench->seconds, seed, bench->lab.dir);
    bench_run(&bench->lab, &command, &server, &outcome);
    process_stop(&server, 2000);
    json_decref(bench_load_json(&outcome, &command));
    bench_log(&bench->lab, "samples", LOG_SAMPLES, sizeof(struct sample), &reader);
    const struct sample *samples = reader.records;
    for (size_t i = 0; i < reader.count; i++) {
        double us =
            sample_is_answered(&samples[i])
                ? (double)(samples[i].reply_tsc - samples[i].intended_tsc) / bench->ticks_per_us -
                      minus_us
                : INFINITY;
        if (array_push(out, us) < 0)
            bench_fail("out of memory");
    }
    log_reader_close(&reader);
}

static void run_point(struct bench *bench, int system, int at, int round)
{
    struct point *point = &bench->points[system][at];
    size_t before = point->pooled.count;
    int seed = 1 + round * SYSTEMS * LOADS + system * LOADS + at;
    run_load(bench, systems[system].service, loads[at] * 1e6 / service_us, "exponential", seed, 0,
             &point->pooled);
    // The round's own percentiles; that this sorts its part of the pool does no harm.
    size_t count = point->pooled.count - before;
    quantile_sort(point->pooled.items + before, count);
    for (int q = 0; q < QUANTILES; q++)
        point->rounds[q][round] =
            quantile_sorted(point->pooled.items + before, count, quantiles[q]);
}

// --- the table -----------------------------------------------------------------------------------

// What was measured, and its 95 % interval from the rounds.
static struct plot_point measured(const struct bench *bench, const struct point *point, double load,
                                  int q)
{
    double mean = 0, squares = 0, rounds = bench->rounds;
    for (int r = 0; r < bench->rounds; r++)
        mean += point->rounds[q][r] / rounds;
    for (int r = 0; r < bench->rounds; r++)
        squares += (point->rounds[q][r] - mean) * (point->rounds[q][r] - mean);
    double t = bench->rounds > 1 ? gsl_cdf_tdist_Pinv(0.975, rounds - 1) : NAN;
    double half = t * sqrt(squares / (rounds - 1) / rounds);
    double value = quantile_sorted(point->pooled.items, point->pooled.count, quantiles[q]);
    return (struct plot_point){.load = load, .us = value, .low = mean - half, .high = mean + half};
}

// Prints and keeps one comparison. Returns whether theory lies within the interval.
static bool compare(struct bench *bench, int system, int at, int q, double exact,
                    const struct plot_point *got)
{
    bool within = exact >= got->low && exact <= got->high;
    printf("%-15s %3.0f %% %s %9.1f %9.1f  [%8.1f, %8.1f]  x%.3f%s\n", systems[system].name,
           loads[at] * 100, quantile_names[q], exact, got->us, got->low, got->high, got->us / exact,
           within ? "" : "  outside");
    const char *key = systems[system].key, *name = quantile_names[q];
    int percent = (int)lround(loads[at] * 100);
    bench_add(&bench->metrics, "us", exact, "%s_%d_%s_exact", key, percent, name);
    for (int r = 0; r < bench->rounds; r++)
        bench_add(&bench->metrics, "us", bench->points[system][at].rounds[q][r],
                  "%s_%d_%s_measured", key, percent, name);
    bench_add(&bench->metrics, "times", got->us / exact, "%s_%d_%s_ratio", key, percent, name);
    return within;
}

// The overhead of the load that is nearest.
static void draw_curve(int system, int q, double overhead[LOADS][OVERHEAD_POINTS],
                       struct plot_line *line)
{
    for (int i = 0; i < CURVE_POINTS; i++) {
        double load = 0.02 + 0.83 * i / (CURVE_POINTS - 1);
        int nearest = (int)lround(load / 0.2) - 1;
        nearest = nearest < 0 ? 0 : nearest >= LOADS ? LOADS - 1 : nearest;
        struct queue queue = theory(system, load);
        line->curve[line->curve_count++] = (struct plot_point){
            .load = load,
            .us = queue_quantile(&queue, overhead[nearest], OVERHEAD_POINTS, quantiles[q])};
        queue_close(&queue);
    }
}

static void take_overhead(struct bench *bench, int at, double overhead[OVERHEAD_POINTS])
{
    struct values *values = &bench->overhead[at];
    int percent = (int)lround(loads[at] * 100);
    quantile_sort(values->items, values->count);
    for (int i = 0; i < OVERHEAD_POINTS; i++)
        overhead[i] = quantile_sorted(values->items, values->count, (i + 0.5) / OVERHEAD_POINTS);
    double p50 = overhead[OVERHEAD_POINTS / 2], p99 = overhead[OVERHEAD_POINTS * 99 / 100];
    printf("overhead at the rate of %d %%: p50 %.1f us, p99 %.1f us (%zu requests)\n", percent, p50,
           p99, values->count);
    bench_add(&bench->metrics, "us", p50, "overhead_%d_p50", percent);
    bench_add(&bench->metrics, "us", p99, "overhead_%d_p99", percent);
}

static void report(struct bench *bench)
{
    static struct plot plot = {.low_us = 50, .high_us = 10000};
    static double overhead[LOADS][OVERHEAD_POINTS];
    int outside = 0;
    for (int at = 0; at < LOADS; at++)
        take_overhead(bench, at, overhead[at]);
    printf("\n%-15s %5s     %9s %9s  %20s\n", "", "load", "exact us", "measured", "95 % interval");
    for (int system = 0; system < SYSTEMS; system++) {
        plot.panels[system].name = systems[system].name;
        for (int at = 0; at < LOADS; at++) {
            struct queue queue = theory(system, loads[at]);
            struct values *pooled = &bench->points[system][at].pooled;
            quantile_sort(pooled->items, pooled->count);
            for (int q = 0; q < QUANTILES; q++) {
                struct plot_line *line = &plot.panels[system].lines[q];
                double exact = queue_quantile(&queue, overhead[at], OVERHEAD_POINTS, quantiles[q]);
                struct plot_point got = measured(bench, &bench->points[system][at], loads[at], q);
                outside += !compare(bench, system, at, q, exact, &got);
                line->measured[line->measured_count++] = got;
            }
            queue_close(&queue);
        }
        for (int q = 0; q < QUANTILES; q++) {
            struct plot_line *line = &plot.panels[system].lines[q];
            line->name = quantile_names[q];
            line->colour = q == 0 ? "#2f86d6" : "#d9731a";
            draw_curve(system, q, overhead, line);
        }
    }
    const int all = SYSTEMS * LOADS * QUANTILES;
    printf("\n%d of %d exact values lie outside the 95 %% interval (%.1f would by chance)\n",
           outside, all, 0.05 * all);
    bench_add(&bench->metrics, "of 24", outside, "outside_interval");
    char path[300];
    snprintf(path, sizeof path, "%s/bench/truth.svg", bench_build());
    if (plot_write(&plot, path) < 0)
        bench_fail("cannot write %s", path);
}

int main(void)
{
    static struct bench bench;
    char service[30];
    snprintf(service, sizeof service, "fixed:%dus", OVERHEAD_SERVICE_US);
    bench.rounds = (int)bench_setting("BENCH_ROUNDS", 5, 2, BENCH_ROUNDS_MAX);
    bench.seconds = bench_setting("BENCH_SECONDS", 8, 0.2, 60);
    bench.ticks_per_us = tsc_measure_hz(100000000) / 1e6;
    bench_lab_open(&bench.lab, "reno");
    for (int round = 0; round < bench.rounds; round++) {
        bench_progress("round %d of %d: the overhead", round + 1, bench.rounds);
        for (int at = 0; at < LOADS; at++)
            run_load(&bench, service, loads[at] * 1e6 / service_us, "fixed", round + 1,
                     OVERHEAD_SERVICE_US, &bench.overhead[at]);
        for (int system = 0; system < SYSTEMS; system++)
            for (int at = 0; at < LOADS; at++) {
                bench_progress("round %d of %d: %s at %.0f %%", round + 1, bench.rounds,
                               systems[system].name, loads[at] * 100);
                run_point(&bench, system, at, round);
            }
    }
    bench_progress("%s", "");
    bench_lab_close(&bench.lab);
    report(&bench);
    bench_write(&bench.metrics, "truth");
    return 0;
}
