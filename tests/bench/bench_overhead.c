// SPDX-License-Identifier: MIT
//
// What watching costs the server: its throughput when it is asked for more than it can give, and
// the latency's p50 and p99 at a moderate load, with nothing, with the shim, with the capture of
// kernel events, and with both. Whole experiments (`taillight run`), the four variants one after
// the other in every round, so that a machine that changes under way changes for all alike.
//
//     bench_overhead [ROUNDS [SECONDS]]     writes $BUILD/bench/overhead.json
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/process.h"
#include "base/quantile.h"

enum { ROUNDS = 5, MAX_ROUNDS = 50, SECONDS = 3, MODERATE = 20000, TOO_MUCH = 400000 };

struct variant {
    const char *name, *shim, *backend;
};

static const struct variant variants[] = {{"nothing", "false", "none"},
                                          {"shim", "true", "none"},
                                          {"events", "false", "events"},
                                          {"both", "true", "events"}};
enum { VARIANTS = sizeof variants / sizeof *variants };

enum metric { THROUGHPUT, P50, P99, METRICS };
static const struct {
    const char *name, *unit;
} metrics[METRICS] = {{"throughput", "requests/s"}, {"p50", "us"}, {"p99", "us"}};

struct bench {
    char dir[200], program[300];
    int rounds, seconds;
    double values[METRICS][VARIANTS][MAX_ROUNDS];
};

static void give_up(const char *what)
{
    fprintf(stderr, "bench_overhead: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void write_experiment(const struct bench *bench, const char *path,
                             const struct variant *variant, int rate)
{
    FILE *file = fopen(path, "we");
    if (!file)
        give_up(path);
    fprintf(file,
            "name: overhead\n"
            "hosts:\n"
            "  client: {kind: netns, cores: [1]}\n"
            "  server: {kind: netns, cores: [0]}\n"
            "servers:\n"
            "  cache: {host: server, kind: memcached, threads: 1, memory: 256MiB, shim: %s}\n"
            "workload:\n"
            "  mix: {get: 90, set: 10}\n"
            "  keys: {count: 10k, size: {fixed: 31}, popularity: {zipf: 0.99}}\n"
            "  values: {size: {fixed: 200}}\n"
            "load: {to: cache, rate: %d, connections: 16, depth: 8, duration: %ds, seed: 1}\n"
            "capture: {backend: %s, buffer: 128MiB}\n",
            variant->shim, rate, bench->seconds, variant->backend);
    if (fclose(file) != 0)
        give_up(path);
}

// Runs one experiment and reads the load's own summary of it. A run may well end without a verdict
// (exit 4): nothing was captured, or more was asked for than the server could give.
static json_t *run_once(const struct bench *bench, const struct variant *variant, int rate)
{
    char path[400], out[400], load[500], log[400];
    snprintf(path, sizeof path, "%s/overhead.yaml", bench->dir);
    snprintf(out, sizeof out, "%s/run", bench->dir);
    snprintf(log, sizeof log, "%s/log", bench->dir);
    write_experiment(bench, path, variant, rate);
    const char *const clear[] = {"rm", "-rf", out, NULL};
    const char *const argv[] = {bench->program, "run", path, "--out", out, "--quiet", NULL};
    const struct process_place place = {.log_path = log};
    struct process process;
    struct error err;
    int status;
    if (process_run(clear, NULL, 10000, NULL, 0, &err) < 0 ||
        process_start(&process, argv, &place, &err) < 0)
        exit(error_report(&err));
    if (process_wait(&process, 120000, &status, &err) != 1) {
        process_stop(&process, 2000);
        fprintf(stderr, "bench_overhead: a run did not end\n");
        exit(1);
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    snprintf(load, sizeof load, "%s/client/load.json", out);
    json_t *summary = code == 0 || code == 4 ? json_load_file(load, 0, NULL) : NULL;
    if (!summary) {
        fprintf(stderr, "bench_overhead: %s ended with %d; see %s\n", variant->name, code, log);
        exit(1);
    }
    process_run(clear, NULL, 10000, NULL, 0, &err);
    return summary;
}

static void run_variant(struct bench *bench, int v, int round)
{
    json_t *moderate = run_once(bench, &variants[v], MODERATE);
    json_t *latency = json_object_get(moderate, "latency_us");
    bench->values[P50][v][round] = json_number_value(json_object_get(latency, "p50"));
    bench->values[P99][v][round] = json_number_value(json_object_get(latency, "p99"));
    json_decref(moderate);
    json_t *saturated = run_once(bench, &variants[v], TOO_MUCH);
    bench->values[THROUGHPUT][v][round] =
        json_number_value(json_object_get(saturated, "achieved_rate"));
    json_decref(saturated);
}

static json_t *metric_json(const double *sorted, int rounds, const char *unit)
{
    return json_pack("{s:f, s:s, s:i, s:f, s:f}", "value",
                     quantile_sorted(sorted, (size_t)rounds, 0.5), "unit", unit, "runs", rounds,
                     "min", sorted[0], "max", sorted[rounds - 1]);
}

// Ratios are taken round by round: what slows a round slows both of its sides.
static double median_ratio(const struct bench *bench, int metric, int v)
{
    double ratios[MAX_ROUNDS];
    for (int r = 0; r < bench->rounds; r++)
        ratios[r] = bench->values[metric][v][r] / bench->values[metric][0][r];
    quantile_sort(ratios, (size_t)bench->rounds);
    return quantile_sorted(ratios, (size_t)bench->rounds, 0.5);
}

static json_t *report(struct bench *bench)
{
    json_t *all = json_object();
    double ratios[METRICS][VARIANTS];
    for (int m = 0; m < METRICS; m++)
        for (int v = 0; v < VARIANTS; v++)
            ratios[m][v] = median_ratio(bench, m, v);
    printf("%-10s %-24s %-24s %-24s\n", "", "throughput", "p50 at 20k/s", "p99 at 20k/s");
    for (int v = 0; v < VARIANTS; v++) {
        printf("%-10s", variants[v].name);
        for (int m = 0; m < METRICS; m++) {
            double *values = bench->values[m][v];
            char name[60];
            quantile_sort(values, (size_t)bench->rounds);
            snprintf(name, sizeof name, "%s_%s", metrics[m].name, variants[v].name);
            json_object_set_new(all, name, metric_json(values, bench->rounds, metrics[m].unit));
            snprintf(name, sizeof name, "%s_ratio_%s", metrics[m].name, variants[v].name);
            json_object_set_new(all, name,
                                json_pack("{s:f, s:s, s:i}", "value", ratios[m][v], "unit",
                                          "ratio to nothing", "runs", bench->rounds));
            printf(" %8.*f %-7s x%-5.2f", m == THROUGHPUT ? 0 : 1,
                   quantile_sorted(values, (size_t)bench->rounds, 0.5),
                   m == THROUGHPUT ? "/s" : "us", ratios[m][v]);
        }
        printf("\n");
    }
    return json_pack("{s:s, s:o}", "name", "overhead", "metrics", all);
}

static int number_argument(int argc, char **argv, int index, int most, int otherwise)
{
    if (argc <= index)
        return otherwise;
    int number = atoi(argv[index]);
    return number < 1 ? 1 : number > most ? most : number;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    const char *build = getenv("BUILD");
    char path[300];
    if (geteuid() != 0) {
        printf("needs root: it makes network namespaces and captures\n");
        return 77;
    }
    bench.rounds = number_argument(argc, argv, 1, MAX_ROUNDS, ROUNDS);
    bench.seconds = number_argument(argc, argv, 2, 60, SECONDS);
    snprintf(bench.program, sizeof bench.program, "%s/taillight", build ? build : "build");
    snprintf(bench.dir, sizeof bench.dir, "/tmp/taillight-bench-XXXXXX");
    if (!mkdtemp(bench.dir))
        give_up("cannot make a folder in /tmp");
    for (int round = 0; round < bench.rounds; round++)
        for (int i = 0; i < VARIANTS; i++) {
            int v = (i + round) % VARIANTS; // nobody always comes first
            fprintf(stderr, "\r\033[Kround %d of %d: %s", round + 1, bench.rounds,
                    variants[v].name);
            run_variant(&bench, v, round);
        }
    fprintf(stderr, "\r\033[K");
    json_t *document = report(&bench);
    snprintf(path, sizeof path, "%s/bench", build ? build : "build");
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/bench/overhead.json", build ? build : "build");
    if (json_dump_file(document, path, JSON_INDENT(2)) < 0)
        give_up(path);
    json_decref(document);
    const char *const clear[] = {"rm", "-rf", bench.dir, NULL};
    process_run(clear, NULL, 10000, NULL, 0, NULL);
    return 0;
}
