// SPDX-License-Identifier: MIT
//
// Coordinated omission: a server is stopped (SIGSTOP) for 100 ms once in 10 s. What p99 must be is
// known: labserver serves 50 us a request, 10,000 come a second, so it is half busy. Who arrives u
// after the pause of length P began waits, in the fluid limit, for the rest of the pause and the
// backlog before it, P - u (1 - load), until the backlog has drained at u = P / (1 - load). So a
// share f = P / ((1 - load) T) of the requests waits, evenly between 0 and P, and the q-quantile of
// the latency lies at P (1 - (1 - q) / f), plus the service.
//
// `taillight load` has 16 connections with one request each, like the peers: that it holds back
// requests meanwhile must not show in what it reports, and shows in the uncorrected figure beside
// it. The peers report what they report, of the same pause of the servers they are made for.
//
//     BENCH_ROUNDS (5)     writes $BUILD/bench/omission.json
#include <signal.h>

#include "tests/bench/bench.h"

enum {
    LAB_PORT = 22431,
    REDIS_PORT = 22432,
    NGINX_PORT = 22433,
    SECONDS = 10,
    RATE = 10000,
    SERVICE_US = 50,
    PAUSE_US = 100000,
    PAUSE_AFTER_US = 3000000, // into the run
};

struct bench {
    struct bench_lab lab;
    struct process labserver, redis, nginx;
    struct bench_metrics metrics;
    int rounds;
};

// Runs a program on the client's host and stops the server meanwhile. Returns the pause in us.
static double run_paused(struct bench *bench, const struct bench_command *command,
                         const struct process *server, struct bench_outcome *outcome)
{
    struct process process;
    bench_start(&bench->lab, &process, command);
    usleep(PAUSE_AFTER_US);
    double began = bench_now();
    if (kill(server->pid, SIGSTOP) < 0)
        bench_fail("the server is gone");
    usleep(PAUSE_US);
    kill(server->pid, SIGCONT);
    double pause_us = (bench_now() - began) * 1e6;
    bench_finish(&process, outcome);
    return pause_us;
}

static void start_labserver(struct bench *bench)
{
    struct bench_command command;
    bench_command(&command, "%s/labserver --port %d --exact --service fixed:%dus", bench_build(),
                  LAB_PORT, SERVICE_US);
    bench_serve(&bench->lab, &bench->labserver, LAB_PORT, &command);
}

static double fluid_quantile(double q, double pause_us)
{
    double load = RATE * SERVICE_US / 1e6;
    double share = pause_us / ((1 - load) * SECONDS * 1e6);
    return pause_us * (1 - (1 - q) / share) + SERVICE_US;
}

static void run_ours(struct bench *bench, int round)
{
    static struct bench_outcome outcome;
    struct bench_command command;
    struct bench_metrics *m = &bench->metrics;
    start_labserver(bench);
    bench_command(&command,
                  "%s/taillight load --server %s:%d --rate %d --connections 16 --depth 1 "
                  "--duration %ds --stamps user --seed %d --json --quiet",
                  bench_build(), bench_server_address(&bench->lab), LAB_PORT, RATE, SECONDS,
                  round + 1);
    double pause_us = run_paused(bench, &command, &bench->labserver, &outcome);
    process_stop(&bench->labserver, 2000);
    json_t *json = bench_load_json(&outcome, &command);
    bench_add(m, "us", pause_us, "pause");
    static const struct {
        const char *name;
        double q;
    } quantiles[] = {{"p99", 0.99}, {"p99.9", 0.999}};
    for (size_t i = 0; i < 2; i++) {
        char path[60];
        double theory = fluid_quantile(quantiles[i].q, pause_us);
        snprintf(path, sizeof path, "latency_us/%s", quantiles[i].name);
        double corrected = bench_json_number(json, path);
        snprintf(path, sizeof path, "uncorrected_latency_us/%s", quantiles[i].name);
        bench_add(m, "us", theory, "%s_theory", quantiles[i].name);
        bench_add(m, "us", corrected, "%s_taillight", quantiles[i].name);
        bench_add(m, "us", bench_json_number(json, path), "%s_uncorrected", quantiles[i].name);
        bench_add(m, "times", corrected / theory, "%s_ratio", quantiles[i].name);
    }
    json_decref(json);
}

// --- the peers -----------------------------------------------------------------------------------

static void run_redis_benchmark(struct bench *bench)
{
    static struct bench_outcome outcome;
    struct bench_command command;
    double rps, average, least, p50, p95, p99, most;
    bench_command(&command, "redis-benchmark -h %s -p %d -t get -c 16 -d 200 -n 600000 --csv",
                  bench_server_address(&bench->lab), REDIS_PORT);
    run_paused(bench, &command, &bench->redis, &outcome);
    const char *row = strstr(outcome.output, "\"GET\"");
    if (!row || sscanf(row, "\"GET\",\"%lf\",\"%lf\",\"%lf\",\"%lf\",\"%lf\",\"%lf\",\"%lf\"", &rps,
                       &average, &least, &p50, &p95, &p99, &most) != 7)
        bench_fail("redis-benchmark did not print its table");
    bench_add(&bench->metrics, "us", p99 * 1e3, "p99_redis_benchmark");
    bench_add(&bench->metrics, "us", most * 1e3, "max_redis_benchmark");
}

// A figure of wrk's, with its unit: us, ms or s.
static double wrk_us(const char *text)
{
    double value;
    char unit[8];
    if (!text || sscanf(text, "%lf%7s", &value, unit) != 2)
        bench_fail("wrk did not print its latencies");
    return value * (strcmp(unit, "us") == 0 ? 1 : strcmp(unit, "ms") == 0 ? 1e3 : 1e6);
}

static void run_wrk(struct bench *bench)
{
    static struct bench_outcome outcome;
    struct bench_command command;
    bench_command(&command, "wrk -t 1 -c 16 -d %d --latency http://%s:%d/", SECONDS,
                  bench_server_address(&bench->lab), NGINX_PORT);
    run_paused(bench, &command, &bench->nginx, &outcome);
    const char *p99 = strstr(outcome.output, "99%"), *row = strstr(outcome.output, "Latency ");
    bench_add(&bench->metrics, "us", wrk_us(p99 ? p99 + 3 : NULL), "p99_wrk");
    char average[16], deviation[16], most[16];
    if (!row || sscanf(row, "Latency %15s %15s %15s", average, deviation, most) != 3)
        bench_fail("wrk did not print its latencies");
    bench_add(&bench->metrics, "us", wrk_us(most), "max_wrk");
}

// memaslap counts latencies by powers of two; the quantile is the upper end of its bucket.
static double memaslap_quantile(const char *rows, double q)
{
    double counts[64] = {0}, all = 0, below = 0;
    int first, used, line;
    for (; sscanf(rows, " %d:%n", &first, &used) == 1 && first < 60; rows += used) {
        for (rows += used, line = 0; line < 4; line++, rows += used) {
            if (sscanf(rows, "%*[ ]%lf%n", &counts[first + line], &used) != 1)
                break;
            all += counts[first + line];
        }
        used = 0;
    }
    for (int i = 0; i < 64; i++) {
        below += counts[i];
        if (all > 0 && below >= q * all)
            return exp2(i);
    }
    return NAN;
}

static void run_memaslap(struct bench *bench)
{
    static struct bench_outcome outcome;
    struct bench_command command;
    double most;
    start_labserver(bench);
    bench_command(&command, "memcaslap -s %s:%d -T 1 -c 16 -w 1k -X 200 -t %ds -S %ds",
                  bench_server_address(&bench->lab), LAB_PORT, SECONDS, SECONDS);
    run_paused(bench, &command, &bench->labserver, &outcome);
    process_stop(&bench->labserver, 2000);
    const char *total = strstr(outcome.output, "Total Statistics (");
    const char *max = total ? strstr(total, "Max:") : NULL;
    const char *rows = total ? strstr(total, "Log2 Dist:") : NULL;
    if (!max || !rows || sscanf(max, "Max: %lf", &most) != 1)
        bench_fail("memaslap did not print its statistics");
    bench_add(&bench->metrics, "us", memaslap_quantile(rows + 10, 0.99), "p99_memaslap");
    bench_add(&bench->metrics, "us", most, "max_memaslap");
}

static void report(const struct bench *bench)
{
    const struct bench_metrics *m = &bench->metrics;
    printf("a pause of %.1f ms in %d s\n\n%-34s %12s %12s\n", bench_median(m, "pause") / 1e3,
           SECONDS, "", "p99", "p99.9");
    printf("%-34s %9.1f us %9.1f us\n", "theory (labserver, half busy)",
           bench_median(m, "p99_theory"), bench_median(m, "p99.9_theory"));
    printf("%-34s %9.1f us %9.1f us\n", "taillight load", bench_median(m, "p99_taillight"),
           bench_median(m, "p99.9_taillight"));
    printf("%-34s %9.1f us %9.1f us\n\n%-34s %12s %12s\n", "taillight load, uncorrected",
           bench_median(m, "p99_uncorrected"), bench_median(m, "p99.9_uncorrected"), "", "p99",
           "max");
    static const struct {
        const char *key, *name;
    } peers[] = {{"memaslap", "memaslap (labserver), at most"},
                 {"redis_benchmark", "redis-benchmark (Redis)"},
                 {"wrk", "wrk (nginx)"}};
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        printf("%-34s %9.1f us %9.1f us\n", peers[i].name, bench_median(m, "p99_%s", peers[i].key),
               bench_median(m, "max_%s", peers[i].key));
}

int main(void)
{
    static struct bench bench;
    bench.rounds = (int)bench_setting("BENCH_ROUNDS", 5, 1, BENCH_ROUNDS_MAX);
    bench_need("redis-benchmark", "redis-server", "memcaslap", "wrk", "nginx", NULL);
    bench_lab_open(&bench.lab, "reno");
    bench_serve_redis(&bench.lab, &bench.redis, REDIS_PORT);
    bench_serve_nginx(&bench.lab, &bench.nginx, (struct bench_nginx_ports){.http = NGINX_PORT});
    for (int round = 0; round < bench.rounds; round++) {
        static void (*const peers[])(struct bench *) = {run_redis_benchmark, run_wrk, run_memaslap};
        bench_progress("round %d of %d", round + 1, bench.rounds);
        run_ours(&bench, round);
        for (size_t i = 0; i < 3; i++)
            peers[i](&bench);
    }
    bench_progress("%s", "");
    report(&bench);
    bench_write(&bench.metrics, "omission");
    process_stop(&bench.redis, 2000);
    process_stop(&bench.nginx, 2000);
    bench_lab_close(&bench.lab);
    return 0;
}
