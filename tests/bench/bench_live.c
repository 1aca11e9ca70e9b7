// SPDX-License-Identifier: MIT
//
// What the live view costs the load: `taillight load` with its stderr on a terminal, which shows
// it, and the same with --quiet, which does not, one after the other in every round, in turns which
// is first. In an open loop, and as fast as the server answers with 16 requests a connection under
// way, where a reply is cheapest and its entry in the view's counters weighs most. Compared are the
// engine's CPU per request, the whole process's, and the rate.
//
//     BENCH_ROUNDS (10), BENCH_SECONDS (3)     writes $BUILD/bench/live.json
#include <pthread.h>

#include "tests/bench/bench.h"

enum { LIVE_PORT = 22461 };

struct live_case {
    const char *name, *rate;
    int depth;
};
static const struct live_case cases[] = {{"open", "20k", 1}, {"max_depth16", "max", 16}};
enum { CASES = sizeof cases / sizeof *cases };

// A terminal whose other side is read and counted.
struct terminal {
    int master;
    char path[64];
    pthread_t reader;
    unsigned shown; // how often the view's line came
};

static void *read_terminal(void *argument)
{
    struct terminal *terminal = argument;
    static const char line[] = " in flight, ";
    char bytes[4096];
    ssize_t got;
    size_t matched = 0;
    while ((got = read(terminal->master, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < got; i++) {
            matched = bytes[i] == line[matched] ? matched + 1 : bytes[i] == line[0];
            if (matched < sizeof line - 1)
                continue;
            matched = 0;
            __atomic_fetch_add(&terminal->shown, 1, __ATOMIC_RELAXED);
        }
    return NULL;
}

static void terminal_open(struct terminal *terminal)
{
    *terminal = (struct terminal){.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
    if (terminal->master < 0 || grantpt(terminal->master) < 0 || unlockpt(terminal->master) < 0 ||
        ptsname_r(terminal->master, terminal->path, sizeof terminal->path) != 0)
        bench_fail("no terminal can be made: %s", strerror(errno));
    // Kept open: the other side would else end with each program's end.
    if (open(terminal->path, O_RDWR | O_NOCTTY | O_CLOEXEC) < 0 ||
        pthread_create(&terminal->reader, NULL, read_terminal, terminal) != 0)
        bench_fail("no terminal can be made: %s", strerror(errno));
}

static void run(struct bench_lab *lab, struct bench_metrics *metrics, struct terminal *terminal,
                const struct live_case *load, bool shown, int round)
{
    static struct bench_outcome outcome;
    double seconds = bench_setting("BENCH_SECONDS", 3, 0.5, 20);
    struct bench_command command;
    struct process process;
    struct error err;
    bench_command(&command,
                  "%s/taillight load --server %s:%d --protocol redis --workload %s/live.yaml "
                  "--rate %s --connections 16 --depth %d --duration %.3fs --stamps user --seed %d "
                  "--json%s",
                  bench_build(), bench_server_address(lab), LIVE_PORT, lab->dir, load->rate,
                  load->depth, seconds, round + 1, shown ? "" : " --quiet");
    struct process_place place = host_place(&lab->hosts.items[BENCH_CLIENT], NULL);
    place.log_path = terminal->path;
    place.pipe_output = true;
    unsigned before = __atomic_load_n(&terminal->shown, __ATOMIC_RELAXED);
    if (process_start(&process, command.words, &place, &err) < 0)
        exit(error_report(&err));
    bench_finish(&process, &outcome);
    unsigned times = __atomic_load_n(&terminal->shown, __ATOMIC_RELAXED) - before;
    if (shown != (times > 0))
        bench_fail("the view was shown %u times %s --quiet", times, shown ? "without" : "with");
    json_t *json = bench_load_json(&outcome, &command);
    const char *kind = shown ? "live" : "quiet";
    double answered = bench_json_number(json, "answered");
    double achieved = bench_json_number(json, "achieved_rate");
    double spin_s = bench_json_number(json, "spin_fraction") * answered / achieved;
    bench_add(metrics, "us", bench_json_number(json, "cpu_us_per_request"), "%s_%s_cpu", load->name,
              kind);
    bench_add(metrics, "us", (outcome.cpu_s - spin_s) / answered * 1e6, "%s_%s_process_cpu",
              load->name, kind);
    bench_add(metrics, "requests/s", achieved, "%s_%s_rate", load->name, kind);
    json_decref(json);
}

static void run_pair(struct bench_lab *lab, struct bench_metrics *metrics,
                     struct terminal *terminal, const struct live_case *load, int round)
{
    static const char *const figures[] = {"cpu", "process_cpu", "rate"};
    for (int i = 0; i < 2; i++)
        run(lab, metrics, terminal, load, (round + i) % 2, round);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        bench_add(metrics, "times",
                  bench_latest(metrics, "%s_live_%s", load->name, figures[i]) /
                      bench_latest(metrics, "%s_quiet_%s", load->name, figures[i]),
                  "%s_%s_ratio", load->name, figures[i]);
}

static void report(const struct bench_metrics *m)
{
    printf("%-14s %12s %12s   %s\n", "", "live", "--quiet",
           "ratio (of each round): median, least, most");
    for (int i = 0; i < CASES; i++) {
        static const struct {
            const char *figure, *unit;
            int decimals;
        } rows[] = {{"cpu", "us", 3}, {"process_cpu", "us", 3}, {"rate", "/s", 0}};
        printf("%s\n", cases[i].name);
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            printf("  %-12s %9.*f %-2s %9.*f %-2s   x%.3f (%.3f, %.3f)\n", rows[r].figure,
                   rows[r].decimals, bench_median(m, "%s_live_%s", cases[i].name, rows[r].figure),
                   rows[r].unit, rows[r].decimals,
                   bench_median(m, "%s_quiet_%s", cases[i].name, rows[r].figure), rows[r].unit,
                   bench_median(m, "%s_%s_ratio", cases[i].name, rows[r].figure),
                   bench_quantile(m, 0, "%s_%s_ratio", cases[i].name, rows[r].figure),
                   bench_quantile(m, 1, "%s_%s_ratio", cases[i].name, rows[r].figure));
    }
}

int main(void)
{
    static struct bench_lab lab;
    static struct bench_metrics metrics;
    struct process server;
    struct terminal terminal;
    char path[100];
    int rounds = (int)bench_setting("BENCH_ROUNDS", 10, 1, BENCH_ROUNDS_MAX);
    bench_need("redis-server", NULL);
    bench_lab_open(&lab, "reno");
    terminal_open(&terminal);
    snprintf(path, sizeof path, "%s/live.yaml", lab.dir);
    bench_write_text(path, "mix: {get: 1}\nkeys: {count: 10k, size: {fixed: 16}}\n");
    bench_serve_redis(&lab, &server, LIVE_PORT);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < CASES; i++) {
            bench_progress("round %d of %d: %s", round + 1, rounds, cases[i].name);
            run_pair(&lab, &metrics, &terminal, &cases[i], round);
        }
    bench_progress("%s", "");
    report(&metrics);
    bench_write(&metrics, "live");
    process_stop(&server, 2000);
    bench_lab_close(&lab);
    return 0;
}
