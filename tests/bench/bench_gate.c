// SPDX-License-Identifier: MIT
//
// Can the gate be trusted? How often it is red between equal builds, how often it sees a p99 that
// is 10 % higher and names why, and how many repetitions that takes.
//
// Simulated runs (tests/analysis/compare/simulated_runs.h) whose truth is known, over how much runs
// differ among each other and how many there are; then real ones: labserver through `taillight
// run`, as it is and with a longer service time, in turns. Real comparisons draw five runs a side
// from all that were made, without replacement within a comparison; different comparisons share
// runs. Two servers, as it depends on what makes the p99: requests that are slow by themselves,
// which repeat to a percent; or the stalls of the machine under it, which come and go.
//
//     BENCH_ROUNDS (20): base runs twice as many, slower ones as many, each about 5 s
//     BENCH_TRIALS (100): simulated comparisons a row, three times as many of equal builds
//                                                                writes $BUILD/bench/gate.json
#include "analysis/compare/cause_shift.h"
#include "analysis/compare/run_profile.h"
#include "analysis/run/run_analyze.h"
#include "base/progress.h"
#include "base/units.h"
#include "tests/analysis/compare/simulated_runs.h"
#include "tests/bench/bench.h"

enum { SIDE_RUNS = 5, COMPARISONS = 100, NAMED = 3, PATIENCE_MS = 60000, SEED = 24710 };
static const double limit = 0.05, quantile = 0.99;
static const char injected[] = "application time (A)";

struct server {
    const char *words, *service[COMPARE_SIDES], *rate, *duration;
};
static const struct server servers[] = {
    {"a command in 33 is slow, and takes 10 % longer",
     {"bimodal:100us,2ms,0.03", "bimodal:100us,2.2ms,0.03"},
     "500",
     "4s"},
    {"all take alike, and 12 % longer",
     {"lognormal:100us,0.25", "lognormal:112us,0.25"},
     "2k",
     "2s"},
};

// --- simulated -----------------------------------------------------------------------------------

static void simulated(struct bench_metrics *metrics, int trials)
{
    static const struct {
        double between, tail;
        const char *words;
    } spreads[] = {{0.005, 0, "0.5 %"},
                   {0.02, 0, "2 %"},
                   {0.05, 0, "5 %"},
                   {0.01, 0.1, "1 %, one in ten 5 %"}};
    static const size_t counts[] = {3, 5, 10};
    int reds = 0, comparisons = 0;
    printf("Simulated: 8,000 requests a run, gate p99 at most +5 %%, %d comparisons a row, three "
           "times as many of equal builds\n\n"
           "  %-20s %5s  %22s  %34s\n  %-20s %5s  %10s %11s  %10s %11s %11s\n",
           trials, "", "", "equal builds", "p99 +10 %", "runs differ by", "runs", "false red",
           "n/a", "red", "n/a", "99 % holds");
    for (size_t s = 0; s < sizeof spreads / sizeof *spreads; s++) {
        size_t needed = 0;
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            struct simulation plan = {.runs = counts[c],
                                      .requests = 8000,
                                      .between = spreads[s].between,
                                      .within = 0.05,
                                      .tail = spreads[s].tail,
                                      .quantile = quantile,
                                      .limit = limit};
            bench_progress("simulating, runs differ by %s, %zu of them", spreads[s].words,
                           counts[c]);
            struct simulated_outcomes same = simulate(&plan, 3 * trials, SEED + s * 10 + c);
            plan.shift = 0.1;
            struct simulated_outcomes slower = simulate(&plan, trials, SEED + 100 + s * 10 + c);
            double all = trials / 100.0;
            bench_progress("%s", "");
            printf("  %-20s %5zu  %8.1f %% %9.1f %%  %8.1f %% %9.1f %% %9.1f %%\n",
                   spreads[s].words, counts[c], same.red / all / 3, same.inconclusive / all / 3,
                   slower.red / all, slower.inconclusive / all,
                   (same.covered + slower.covered) / all / 4);
            bench_add(metrics, "%", same.red / all / 3, "simulated %s %zu false red",
                      spreads[s].words, counts[c]);
            bench_add(metrics, "%", slower.red / all, "simulated %s %zu caught", spreads[s].words,
                      counts[c]);
            fflush(stdout);
            reds += same.red;
            comparisons += same.trials;
            if (!needed && slower.red >= 0.95 * trials)
                needed = counts[c];
        }
        printf("  %-20s %5zu  repetitions see +10 %% in 95 %% of cases%s\n", "",
               needed ? needed : counts[sizeof counts / sizeof *counts - 1],
               needed ? "" : ": not yet");
    }
    printf("\n  false red in all: %d of %d (%.2f %%)\n", reds, comparisons,
           100.0 * reds / comparisons);
    bench_add(metrics, "%", 100.0 * reds / comparisons, "simulated false red");
}

// --- real ----------------------------------------------------------------------------------------

struct real {
    const struct server *server;
    char dir[64];
    struct run_set sides[COMPARE_SIDES];
    gsl_rng *random;
};

#define SLICE "p98.5-p99.5"

static void write_experiment(const struct real *real, int side)
{
    char path[100], text[700];
    snprintf(path, sizeof path, "%s/%d.yaml", real->dir, side);
    snprintf(text, sizeof text,
             "name: gate\n"
             "hosts: {client: {kind: netns, cores: [1]}, server: {kind: netns, cores: [0]}}\n"
             "servers: {lab: {kind: labserver, options: [--service, \"%s\"]}}\n"
             "workload: {protocol: lab}\n"
             "load: {rate: %s, duration: %s, connections: 16, depth: 64}\n"
             "diagnose: {slice: " SLICE "}\n",
             real->server->service[side], real->server->rate, real->server->duration);
    bench_write_text(path, text);
}

// Inconclusive is an outcome as good as any here.
static void run_experiment_file(struct real *real, const char *const *argv)
{
    char log[100];
    struct process process;
    struct error err;
    int status = 0;
    snprintf(log, sizeof log, "%s/run.log", real->dir);
    const struct process_place place = {.discard_output = true, .log_path = log};
    if (process_start(&process, argv, &place, &err) < 0 ||
        process_wait(&process, PATIENCE_MS, &status, &err) < 0)
        exit(error_report(&err));
    process_stop(&process, 0);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code != 0 && code != ERROR_INCONCLUSIVE)
        bench_fail("taillight run: exit %d; see %s", code, log);
}

static void make_run(struct real *real, int side)
{
    char experiment[100], folder[100], program[400];
    struct error err;
    struct run_analysis run;
    struct progress progress;
    snprintf(program, sizeof program, "%s/taillight", bench_build());
    snprintf(experiment, sizeof experiment, "%s/%d.yaml", real->dir, side);
    snprintf(folder, sizeof folder, "%s/run", real->dir);
    const char *const make[] = {program, "run", experiment, "--out", folder, "--quiet", NULL};
    const char *const clear[] = {"rm", "-rf", folder, NULL};
    run_experiment_file(real, make);
    progress_init(&progress, true);
    const struct run_request request = {.run_dir = folder, .profiled = &real->sides[side].slices};
    if (run_analyze(&request, &progress, &run, &err) < 0 ||
        run_set_add(&real->sides[side], &run, &err) < 0)
        exit(error_report(&err));
    run_analysis_free(&run);
    process_run(clear, NULL, PATIENCE_MS, NULL, 0, &err);
}

struct verdict {
    enum gate_outcome outcome;
    double shift;
    bool named, first; // what was injected is among the causes named, or the first of them
};

// One comparison of the runs chosen from two pools, which may be the same.
static void judge(const struct run_set *const pools[COMPARE_SIDES],
                  const size_t chosen[COMPARE_SIDES][SIDE_RUNS], struct verdict *out)
{
    struct latency_set *sets[COMPARE_SIDES];
    struct slice_profile_list profiles[COMPARE_SIDES] = {{0}, {0}};
    struct percentile_shift shift;
    struct slice_shift causes;
    struct error err;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        struct latency_run_array runs = {0};
        for (int i = 0; i < SIDE_RUNS; i++) {
            size_t run = chosen[side][i];
            if (array_push(&runs, pools[side]->latencies.items[run]) < 0 ||
                array_push(&profiles[side], &pools[side]->profiles.items[run].slices.items[0]) < 0)
                bench_fail("out of memory");
        }
        if (latency_set_make(&runs, &sets[side], &err) < 0)
            exit(error_report(&err));
        array_free(&runs);
    }
    const struct latency_set *const sides[COMPARE_SIDES] = {sets[0], sets[1]};
    percentile_shift(sides, quantile, gate_confidence(1), &shift);
    if (slice_shift(profiles, gate_confidence(1), &causes, &err) < 0)
        exit(error_report(&err));
    *out = (struct verdict){.shift = shift.shift, .outcome = GATE_INCONCLUSIVE};
    if (shift.known)
        out->outcome =
            gate_judge_increase(shift.shift, shift.interval.low, shift.interval.high, limit);
    struct named_shift named[NAMED];
    size_t count = slice_shift_named(&causes, true, named, NAMED);
    for (size_t i = 0; i < count; i++) {
        char name[100];
        bool right = strcmp(cause_shift_name(named[i].cause, name, sizeof name), injected) == 0;
        out->first |= right && i == 0;
        out->named |= right;
    }
    slice_shift_free(&causes);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        latency_set_free(sets[side]);
        array_free(&profiles[side]);
    }
}

static void choose(gsl_rng *random, const struct run_set *pool, size_t *out, size_t count)
{
    size_t all[BENCH_ROUNDS_MAX * 2];
    for (size_t i = 0; i < pool->latencies.count; i++)
        all[i] = i;
    gsl_ran_choose(random, out, count, all, pool->latencies.count, sizeof *all);
    gsl_ran_shuffle(random, out, count, sizeof *out);
}

static void compare_real(struct real *real, struct bench_metrics *metrics)
{
    const struct run_set *same[COMPARE_SIDES] = {&real->sides[0], &real->sides[0]};
    const struct run_set *slower[COMPARE_SIDES] = {&real->sides[0], &real->sides[1]};
    int reds = 0, unsure = 0, caught = 0, missed_unsure = 0, named = 0, first = 0;
    double shift = 0;
    for (int i = 0; i < COMPARISONS; i++) {
        size_t chosen[COMPARE_SIDES][SIDE_RUNS];
        struct verdict verdict;
        choose(real->random, same[0], chosen[0], 2 * SIDE_RUNS);
        judge(same, chosen, &verdict);
        reds += verdict.outcome == GATE_FAILED;
        unsure += verdict.outcome == GATE_INCONCLUSIVE;
        choose(real->random, slower[0], chosen[0], SIDE_RUNS);
        choose(real->random, slower[1], chosen[1], SIDE_RUNS);
        judge(slower, chosen, &verdict);
        caught += verdict.outcome == GATE_FAILED;
        missed_unsure += verdict.outcome == GATE_INCONCLUSIVE;
        shift += verdict.shift / COMPARISONS;
        named += verdict.outcome == GATE_FAILED && verdict.named;
        first += verdict.outcome == GATE_FAILED && verdict.first;
    }
    const struct server *server = real->server;
    printf("\nlabserver: %s (%s -> %s)\n"
           "  %d runs a side of %s at %s/s, drawn from %zu + %zu, %d comparisons each\n"
           "  equal builds   red %d, n/a %d\n"
           "  p99 %+.1f %%    red %d, n/a %d; of the red ones, %s is named in %d, first in %d\n",
           server->words, server->service[0], server->service[1], SIDE_RUNS, server->duration,
           server->rate, real->sides[0].latencies.count, real->sides[1].latencies.count,
           COMPARISONS, reds, unsure, 100 * shift, caught, missed_unsure, injected, named, first);
    fflush(stdout);
    const char *of = server->service[0];
    bench_add(metrics, "%", 100.0 * reds / COMPARISONS, "%s false red", of);
    bench_add(metrics, "%", 100.0 * unsure / COMPARISONS, "%s equal n/a", of);
    bench_add(metrics, "%", 100 * shift, "%s injected p99 shift", of);
    bench_add(metrics, "%", 100.0 * caught / COMPARISONS, "%s caught", of);
    if (caught)
        bench_add(metrics, "%", 100.0 * named / caught, "%s named", of);
}

static void real_runs(const struct server *server, struct bench_metrics *metrics, int rounds)
{
    struct real real = {.server = server, .random = gsl_rng_alloc(gsl_rng_mt19937)};
    struct error err;
    gsl_rng_set(real.random, SEED);
    snprintf(real.dir, sizeof real.dir, "/tmp/taillight-bench-XXXXXX");
    if (!mkdtemp(real.dir))
        bench_fail("cannot make a folder in /tmp: %s", strerror(errno));
    for (int side = 0; side < COMPARE_SIDES; side++) {
        struct diagnosis_slice slice;
        if (diagnosis_slice_parse(SLICE, &slice, &err) < 0 ||
            diagnosis_slice_add(&real.sides[side].slices, &slice) < 0)
            bench_fail("%s", "no memory for a slice");
        write_experiment(&real, side);
    }
    for (int i = 0; i < 3 * rounds; i++) {
        bench_progress("run %d of %d", i + 1, 3 * rounds);
        make_run(&real, i % 3 == 1 ? COMPARE_CANDIDATE : COMPARE_BASE);
    }
    bench_progress("%s", "");
    compare_real(&real, metrics);
    const char *const clear[] = {"rm", "-rf", real.dir, NULL};
    process_run(clear, NULL, PATIENCE_MS, NULL, 0, &err);
    for (int side = 0; side < COMPARE_SIDES; side++)
        run_set_free(&real.sides[side]);
    gsl_rng_free(real.random);
}

int main(void)
{
    static struct bench_metrics metrics;
    int rounds = (int)bench_setting("BENCH_ROUNDS", 20, SIDE_RUNS, BENCH_ROUNDS_MAX);
    simulated(&metrics, (int)bench_setting("BENCH_TRIALS", 100, 10, 100000));
    if (geteuid() != 0 || sysconf(_SC_NPROCESSORS_ONLN) < 2)
        printf("\nlabserver: needs root and two cores, left out\n");
    else
        for (size_t i = 0; i < sizeof servers / sizeof *servers; i++)
            real_runs(&servers[i], &metrics, rounds);
    bench_write(&metrics, "gate");
    return 0;
}
