// SPDX-License-Identifier: MIT
//
// What a request costs the client, and how many a client can send: `taillight load` beside the
// peers that Debian packages, and those built in the folder PEERS, on the same servers, each in its
// turn in every round. 16 connections, 200-byte values, client and server on a core each, in
// network namespaces.
//
// Of TLS 1.3 handshakes, beside `openssl s_time -www`, which makes one connection after the other:
// one connection that the server closes behind each reply, and that is opened again, by a full
// handshake (-new) or resuming its session (-reuse). A request of these cases is a handshake and a
// GET. A side whose handshakes are of another kind ends the benchmark.
//
// `taillight load` spins while it has nothing to do; what a request costs is without that, by two
// counts: the engine's own (its thread's CPU time less the time it found nothing to do), and the
// whole process's user and system time less that time, which also holds drawing the schedule and
// computing the statistics. Every request is timed. The peers' cost is their user and system
// time; mutilate spins as well, all the time, and has a cost only where it is told to wait (-B).
// Most peers wait asleep. So `taillight load --sleep` is beside them, too, with all that its
// process uses: its "spinning" is sleep.
//
// The engine's word is not taken for it. What it says its thread did and spun may not be more than
// what the kernel says the process used (getrusage), nor so much less that the schedule and the
// statistics would not explain it. And where the client idles nearly all the time, at a tenth of
// the rate, what it says a request without company costs lies between two counts in which nobody
// spins: at least the send call, by stamps around it; at most what it costs a client that sleeps
// between requests (--sleep), by the kernel's clock of its thread, since sleeping and waking come
// on top there. The latter over loopback only, where the server's core takes a reply in: over a
// veth pair the client's does, in the time of a thread that spins, and in nobody's while it sleeps.
// Where that does not hold over the rounds, the benchmark fails; on a crowded machine
// it may not. What a request costs at half the rate is told beside what its send call
// alone does there, and judged by nothing: fewer requests share a turn, and a server that sleeps
// more often has to be woken more often.
//
//     BENCH_ROUNDS (5), BENCH_SECONDS (3)
//     BENCH_LOOPBACK (0)     1: over loopback, instead of a veth pair
//     PEERS                  a folder in which memtier_benchmark and mutilate were built
//     BENCH_CASES            only cases whose name holds this: "redis", "depth16"
//                            writes $BUILD/bench/loadgen.json
#include "tests/bench/load_peers.h"

#define REDIS_WORKLOAD                                                                             \
    "mix: {get: 1}\nkeys: {count: 10k, size: {fixed: 16}}\nvalues: {size: {fixed: 200}}\n"
#define MEMCACHED_WORKLOAD                                                                         \
    "mix: {get: 90, set: 10}\nkeys: {count: 10k, size: {fixed: 64}}\nvalues: {size: {fixed: "      \
    "200}}\n"
#define HTTP_WORKLOAD "mix: {get: 1}\nkeys: {count: 10k, size: {fixed: 16}}\n"

static const struct load_peer *const redis_peers[] = {&peer_redis_benchmark, &peer_memtier, NULL};
static const struct load_peer *const memcached_peers[] = {
    &peer_memaslap, &peer_memtier, &peer_mutilate, &peer_mutilate_waiting, NULL};
static const struct load_peer *const memcached_deep_peers[] = {&peer_memtier, &peer_mutilate,
                                                               &peer_mutilate_waiting, NULL};
static const struct load_peer *const http_peers[] = {&peer_wrk, NULL};
static const struct load_peer *const http2_peers[] = {&peer_h2load, NULL};
static const struct load_peer *const handshake_peers[] = {&peer_s_time, NULL};

static const struct load_case cases[] = {
    {"redis_depth1", "redis", REDIS, REDIS_PORT, 1, redis_peers, REDIS_WORKLOAD, STAYING},
    {"redis_depth8", "redis", REDIS, REDIS_PORT, 8, redis_peers, REDIS_WORKLOAD, STAYING},
    {"redis_depth16", "redis", REDIS, REDIS_PORT, 16, redis_peers, REDIS_WORKLOAD, STAYING},
    {"redis_depth64", "redis", REDIS, REDIS_PORT, 64, redis_peers, REDIS_WORKLOAD, STAYING},
    {"memcached_depth1", "memcached", MEMCACHED, MEMCACHED_PORT, 1, memcached_peers,
     MEMCACHED_WORKLOAD, STAYING},
    {"memcached_depth8", "memcached", MEMCACHED, MEMCACHED_PORT, 8, memcached_deep_peers,
     MEMCACHED_WORKLOAD, STAYING},
    {"memcached_depth16", "memcached", MEMCACHED, MEMCACHED_PORT, 16, memcached_deep_peers,
     MEMCACHED_WORKLOAD, STAYING},
    {"memcached_depth64", "memcached", MEMCACHED, MEMCACHED_PORT, 64, memcached_deep_peers,
     MEMCACHED_WORKLOAD, STAYING},
    {"http_depth1", "http", NGINX, NGINX_PORT, 1, http_peers, HTTP_WORKLOAD, STAYING},
    {"http_depth8", "http", NGINX, NGINX_PORT, 8, http_peers, HTTP_WORKLOAD, STAYING},
    {"http_depth64", "http", NGINX, NGINX_PORT, 64, http_peers, HTTP_WORKLOAD, STAYING},
    {"http2_depth1", "http2", NGINX, HTTP2_PORT, 1, http2_peers, HTTP_WORKLOAD, STAYING},
    {"http2_depth8", "http2", NGINX, HTTP2_PORT, 8, http2_peers, HTTP_WORKLOAD, STAYING},
    {"http2_depth64", "http2", NGINX, HTTP2_PORT, 64, http2_peers, HTTP_WORKLOAD, STAYING},
    {"tls_http_depth1", "http", NGINX, TLS_PORT, 1, http_peers, HTTP_WORKLOAD, STAYING},
    {"tls_http_depth8", "http", NGINX, TLS_PORT, 8, http_peers, HTTP_WORKLOAD, STAYING},
    {"tls_http2_depth1", "http2", NGINX, TLS_PORT, 1, http2_peers, HTTP_WORKLOAD, STAYING},
    {"tls_http2_depth8", "http2", NGINX, TLS_PORT, 8, http2_peers, HTTP_WORKLOAD, STAYING},
    {"tls_handshake_full", "http", NGINX, TLS_ONCE_PORT, 1, handshake_peers, HTTP_WORKLOAD,
     FULL_HANDSHAKES},
    {"tls_handshake_resumed", "http", NGINX, TLS_ONCE_PORT, 1, handshake_peers, HTTP_WORKLOAD,
     RESUMED_HANDSHAKES},
};
enum { CASES = sizeof cases / sizeof *cases };

static bool is_asked_for(const struct load_case *load)
{
    const char *wanted = getenv("BENCH_CASES");
    return !wanted || strstr(load->name, wanted);
}

static void need_a_case(void)
{
    for (int i = 0; i < CASES; i++)
        if (is_asked_for(&cases[i]))
            return;
    printf("BENCH_CASES: no case is called so; there are:");
    for (int i = 0; i < CASES; i++)
        printf(" %s", cases[i].name);
    printf("\n");
    exit(2);
}

// What may lie between the engine's count and the kernel's: of the process's time, since the two
// clocks tick differently; once, to begin and to end; and per request, to draw the schedule and
// compute the statistics, or of a request that costs much, as a handshake does, a part of that: the
// clocks' difference, too. And what a client that sleeps spins before each request, at most: of
// that no clock tells (NEAR_NS of loadgen/engine/engine_worker_run.c).
static const double beside_least = -0.02, once_s = 0.2, beside_most_us = 3, beside_most = 0.05,
                    near_us = 2;

// --- ours ----------------------------------------------------------------------------------------

enum variant {
    VARIANT_MAX,
    VARIANT_STAMPS,
    VARIANT_THINNED,
    VARIANT_OPEN,
    VARIANT_HALF,
    VARIANT_TENTH,
    VARIANT_ASLEEP,
    VARIANT_SLEEPING,
    VARIANTS
};
static const struct {
    const char *name, *stamps;
    double rate; // of the case's own; 0: as many as the server answers
    const char *option;
} variants[VARIANTS] = {
    [VARIANT_MAX] = {"max", "user", 0, ""},
    [VARIANT_STAMPS] = {"stamps", "sw", 0, ""},
    [VARIANT_THINNED] = {"thinned", "sw:1/16", 0, ""},
    [VARIANT_OPEN] = {"open", "user", 1, ""},
    [VARIANT_HALF] = {"half", "user", 0.5, ""},
    [VARIANT_TENTH] = {"tenth", "user", 0.1, ""},
    [VARIANT_ASLEEP] = {"asleep", "user", 0.1, " --sleep"},
    [VARIANT_SLEEPING] = {"sleeping", "user", 0, " --sleep"},
};

static const char *tls_option(const struct load_case *load)
{
    return is_over_tls(load) ? " --tls-insecure" : "";
}

// Whether connections made the handshakes that the case is about, all but the first ones.
static void check_tls(const struct load_case *load, const json_t *json)
{
    static const char wanted[] = "TLSv1.3, TLS_AES_256_GCM_SHA384"; // what the peers agree on, too
    const char *suite = NULL;
    json_unpack((json_t *)json, "{s:{s:s}}", "tls", "suite", &suite);
    if (is_over_tls(load) && (!suite || strcmp(suite, wanted) != 0))
        bench_fail("%s: not over %s, but %s", load->name, wanted, suite ? suite : "without TLS");
    const double full = bench_json_number(json, "tls/handshakes/count");
    const double resumed = bench_json_number(json, "tls/resumed/count");
    if ((load->handshakes == FULL_HANDSHAKES && resumed > 0) ||
        (load->handshakes == RESUMED_HANDSHAKES && full > 1))
        bench_fail("%s: %.0f full handshakes and %.0f resumed", load->name, full, resumed);
}

static void write_workload(const struct bench *bench, const struct load_case *load, char path[100])
{
    snprintf(path, 100, "%s/%s.yaml", bench->lab.dir, load->name);
    bench_write_text(path, load->workload);
}

// As fast as the server answers, the same with the kernel's stamps of all sends or of one in 16, at
// a rate of its own, at half and at a tenth of that, the latter and the first also asleep in
// between.
static void run_ours(struct bench *bench, const struct load_case *load, enum variant variant,
                     double rate, int round)
{
    static struct bench_outcome outcome;
    struct bench_command command;
    struct bench_metrics *m = &bench->metrics;
    char path[100], rate_text[40] = "max";
    const char *name = load->name, *kind = variants[variant].name;
    write_workload(bench, load, path);
    if (variants[variant].rate > 0)
        snprintf(rate_text, sizeof rate_text, "%.0f", rate * variants[variant].rate);
    bench_command(&command,
                  "%s/taillight load --server %s:%d --protocol %s --workload %s --rate %s "
                  "--connections %d --depth %d --duration %.3fs --stamps %s --seed %d --json "
                  "--quiet%s%s%s",
                  bench_build(), bench_server_address(&bench->lab), load->port, load->protocol,
                  path, rate_text, load->handshakes ? 1 : 16, load->depth, bench->seconds,
                  variants[variant].stamps, round + 1, variants[variant].option, tls_option(load),
                  load->handshakes == FULL_HANDSHAKES ? " --tls-full-handshakes" : "");
    bench_run(&bench->lab, &command, &bench->servers[load->target], &outcome);
    json_t *json = bench_load_json(&outcome, &command);
    check_tls(load, json);
    double answered = bench_json_number(json, "answered");
    double achieved = bench_json_number(json, "achieved_rate");
    double spin =
        bench_json_number(json, "spin_fraction") - bench_json_number(json, "asleep_fraction");
    double ran_s = answered / achieved;
    bench_add(m, "requests/s", achieved, "%s_%s_rate", name, kind);
    double engine_us = bench_json_number(json, "cpu_us_per_request");
    double process_us = (outcome.cpu_s - spin * ran_s) / answered * 1e6;
    bench_add(m, "us", engine_us, "%s_%s_cpu", name, kind);
    bench_add(m, "us", process_us, "%s_%s_process_cpu", name, kind);
    bench_add(m, "us", outcome.cpu_s / answered * 1e6, "%s_%s_whole_cpu", name, kind);
    double beside_s = (process_us - engine_us) * answered / 1e6;
    bench_add(m, "fraction", beside_s / outcome.cpu_s, "%s_%s_beside", name, kind);
    bench_add(m, "us", (beside_s - once_s) / answered * 1e6, "%s_%s_beside_cpu", name, kind);
    bench_add(m, "fraction", spin, "%s_%s_spin", name, kind);
    if (variants[variant].rate > 0)
        bench_add(m, "us", bench_json_number(json, "method/back_to_back_us"), "%s_%s_send", name,
                  kind);
    bench_add(m, "fraction", outcome.server_s / ran_s, "%s_%s_server_busy", name, kind);
    json_decref(json);
}

// What of ours stands beside what of a peer's. Ratios are taken round by round: what slows a round
// slows both of its sides.
static void add_ratios(struct bench_metrics *m, const char *load, const char *peer)
{
    static const struct {
        const char *name, *ours, *theirs;
    } ratios[] = {
        {"rate_ratio", "max_rate", "rate"},
        {"cpu_ratio", "max_cpu", "cpu"},
        {"process_cpu_ratio", "max_process_cpu", "cpu"},
        {"whole_cpu_ratio", "max_whole_cpu", "cpu"},
        {"sleeping_rate_ratio", "sleeping_rate", "rate"},
        {"sleeping_cpu_ratio", "sleeping_whole_cpu", "cpu"},
    };
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++)
        bench_add(m, "times",
                  bench_latest(m, "%s_%s", load, ratios[i].ours) /
                      bench_latest(m, "%s_%s_%s", load, peer, ratios[i].theirs),
                  "%s_%s_%s", load, peer, ratios[i].name);
}

static void run_case(struct bench *bench, const struct load_case *load, int round)
{
    static struct bench_outcome outcome;
    struct bench_metrics *m = &bench->metrics;
    double open_rate = 0;
    for (const struct load_peer *const *next = load->peers; *next; next++) {
        const char *peer = (*next)->name;
        if (!is_present(bench, *next))
            continue;
        const struct peer_result result = (*next)->run(bench, load, &outcome);
        if (open_rate == 0)
            open_rate = result.rate / 2;
        bench_add(m, "requests/s", result.rate, "%s_%s_rate", load->name, peer);
        bench_add(m, "fraction", outcome.server_s / (result.requests / result.rate),
                  "%s_%s_server_busy", load->name, peer);
        if (!(*next)->spins)
            bench_add(m, "us", outcome.cpu_s / result.requests * 1e6, "%s_%s_cpu", load->name,
                      peer);
    }
    if (open_rate == 0)
        open_rate = 20000;
    for (enum variant variant = 0; variant < VARIANTS; variant++)
        run_ours(bench, load, variant, open_rate, round);
    bench_add(m, "times",
              bench_latest(m, "%s_stamps_cpu", load->name) /
                  bench_latest(m, "%s_max_cpu", load->name),
              "%s_stamps_ratio", load->name);
    for (const struct load_peer *const *next = load->peers; *next; next++)
        if (is_present(bench, *next))
            add_ratios(m, load->name, (*next)->name);
}

// --- the engine's count against the kernel's -----------------------------------------------------

static bool is_accounted(const struct bench_metrics *m, const struct load_case *of, bool loopback)
{
    const char *load = of->name;
    bool right = true;
    for (enum variant variant = 0; variant < VARIANT_TENTH; variant++) { // those have few requests
        const char *kind = variants[variant].name;
        double beside = bench_median(m, "%s_%s_beside", load, kind);
        double beside_us = bench_median(m, "%s_%s_beside_cpu", load, kind);
        double costs_us = bench_median(m, "%s_%s_process_cpu", load, kind);
        if (beside >= beside_least && beside_us <= fmax(beside_most_us, beside_most * costs_us))
            continue;
        right = false;
        printf("  WRONG: %s: the process used %.1f %% (beyond the start, %.2f us a request) more "
               "than its engine says it did and spun\n",
               kind, 100 * beside, beside_us);
    }
    if (of->depth > 1) // at a higher rate more requests share a send
        return right;
    const double open_us = bench_median(m, "%s_open_cpu", load),
                 half_us = bench_median(m, "%s_half_cpu", load),
                 open_send_us = bench_median(m, "%s_open_send", load),
                 half_send_us = bench_median(m, "%s_half_send", load),
                 tenth_us = bench_median(m, "%s_tenth_cpu", load),
                 send_us = bench_median(m, "%s_tenth_send", load),
                 asleep_us = bench_median(m, "%s_asleep_cpu", load);
    printf("  at half the rate a request costs x%.2f, its send call alone x%.2f\n",
           half_us / open_us, half_send_us / open_send_us);
    const bool idles = tenth_us >= send_us && (!loopback || tenth_us <= asleep_us + near_us);
    right &= idles;
    printf("  %sat a tenth of the rate it costs %.2f us: the send call is %.2f us, and asleep it "
           "costs "
           "%.2f us%s\n",
           idles ? "" : "WRONG: ", tenth_us, send_us, asleep_us,
           idles ? "" : ": spinning is miscounted");
    return right;
}

// --- servers, and the table ----------------------------------------------------------------------

static void make_certificate(struct bench *bench)
{
    static struct bench_outcome outcome;
    struct bench_command command;
    bench_command(&command,
                  "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
                  "-subj /CN=bench -keyout %s/key.pem -out %s/cert.pem",
                  bench->lab.dir, bench->lab.dir);
    bench_run(&bench->lab, &command, &bench->servers[REDIS], &outcome);
    if (outcome.exit_code != 0)
        bench_fail("openssl makes no certificate");
}

static void start_servers(struct bench *bench)
{
    struct bench_lab *lab = &bench->lab;
    struct bench_command command;
    static struct bench_outcome outcome;
    bench_serve_redis(lab, &bench->servers[REDIS], REDIS_PORT);
    make_certificate(bench);
    bench_serve_nginx(lab, &bench->servers[NGINX],
                      (struct bench_nginx_ports){NGINX_PORT, HTTP2_PORT, TLS_PORT, TLS_ONCE_PORT});
    bench_command(&command, "memcached -u root -U 0 -t 1 -m 256 -l %s -p %d",
                  bench_server_address(lab), MEMCACHED_PORT);
    bench_serve(lab, &bench->servers[MEMCACHED], MEMCACHED_PORT, &command);
    bench_command(&command, "redis-benchmark -h %s -p %d -t set -d 200 -r %d -n %d -P 16 -q",
                  bench_server_address(lab), REDIS_PORT, BENCH_KEYS, 10 * BENCH_KEYS);
    bench_run(lab, &command, &bench->servers[REDIS], &outcome);
    for (int i = 0; i < CASES; i++) {
        char path[100];
        write_workload(bench, &cases[i], path);
        bench_command(&command,
                      "%s/taillight load --server %s:%d --protocol %s --workload %s --prepare "
                      "--quiet%s",
                      bench_build(), bench_server_address(lab), cases[i].port, cases[i].protocol,
                      path, tls_option(&cases[i]));
        bench_run(lab, &command, &bench->servers[cases[i].target], &outcome);
        if (outcome.exit_code != 0)
            bench_fail("cannot load the dataset of %s", cases[i].name);
    }
}

static void print_row(const struct bench_metrics *m, const char *load, const char *kind,
                      const char *what)
{
    static const struct {
        const char *metric, *unit;
        double scale;
        int decimals;
    } columns[] = {{"rate", "/s", 1, 0},
                   {"cpu", " us", 1, 2},
                   {"process_cpu", " us", 1, 2},
                   {"server_busy", " %", 100, 0},
                   {"spin", " %", 100, 0}};
    printf("  %-28s", what);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        double value = bench_median(m, "%s_%s_%s", load, kind, columns[i].metric);
        if (isnan(value))
            printf(" %11s", "");
        else
            printf(" %8.*f%-3s", columns[i].decimals, columns[i].scale * value, columns[i].unit);
    }
    printf("\n");
}

static void print_ratios(const struct bench *bench, const struct load_case *load)
{
    const struct bench_metrics *m = &bench->metrics;
    for (const struct load_peer *const *next = load->peers; *next; next++) {
        const char *peer = (*next)->name;
        if (!is_present(bench, *next))
            continue;
        printf("  ratio to %s: rate x%.2f", peer,
               bench_median(m, "%s_%s_rate_ratio", load->name, peer));
        if (!(*next)->spins)
            printf(", CPU x%.2f (whole process x%.2f, with its spinning x%.2f)",
                   bench_median(m, "%s_%s_cpu_ratio", load->name, peer),
                   bench_median(m, "%s_%s_process_cpu_ratio", load->name, peer),
                   bench_median(m, "%s_%s_whole_cpu_ratio", load->name, peer));
        printf("; asleep: rate x%.2f",
               bench_median(m, "%s_%s_sleeping_rate_ratio", load->name, peer));
        if (!(*next)->spins)
            printf(", CPU x%.2f", bench_median(m, "%s_%s_sleeping_cpu_ratio", load->name, peer));
        printf("\n");
    }
    printf("  kernel stamps: CPU x%.2f\n", bench_median(m, "%s_stamps_ratio", load->name));
}

// Returns whether the engine's count agrees with the kernel's.
static bool report(const struct bench *bench)
{
    const struct bench_metrics *m = &bench->metrics;
    bool accounted = true;
    printf("%-30s %10s  %10s  %10s  %10s  %10s\n", "CPU per request without spinning", "rate",
           "engine", "process", "server", "spinning");
    for (int i = 0; i < CASES; i++) {
        const char *load = cases[i].name;
        if (!is_asked_for(&cases[i]))
            continue;
        printf("%s\n", load);
        for (const struct load_peer *const *peer = cases[i].peers; *peer; peer++)
            if (is_present(bench, *peer))
                print_row(m, load, (*peer)->name, (*peer)->name);
        print_row(m, load, "max", "taillight load, max");
        print_row(m, load, "stamps", "the same, kernel stamps");
        print_row(m, load, "thinned", "stamps of one send in 16");
        print_row(m, load, "sleeping", "taillight load, max, --sleep");
        print_row(m, load, "open", "taillight load, open loop");
        print_ratios(bench, &cases[i]);
        accounted &= is_accounted(m, &cases[i], bench->lab.loopback);
    }
    return accounted;
}

int main(void)
{
    static struct bench bench;
    bench.rounds = (int)bench_setting("BENCH_ROUNDS", 5, 1, BENCH_ROUNDS_MAX);
    bench.seconds = bench_setting("BENCH_SECONDS", 3, 0.5, 20);
    need_a_case();
    bench_need("redis-benchmark", "redis-server", "nginx", "memcached", "openssl", NULL);
    for (int i = 0; i < CASES; i++)
        for (const struct load_peer *const *peer = cases[i].peers; *peer; peer++)
            if (is_asked_for(&cases[i]) && !(*peer)->is_built)
                bench_need((*peer)->program, NULL);
    bench_lab_open(&bench.lab, "reno");
    bench.lab.loopback = bench_setting("BENCH_LOOPBACK", 0, 0, 1) > 0;
    find_built_peers(&bench);
    start_servers(&bench);
    prepare_built_peers(&bench);
    for (int round = 0; round < bench.rounds; round++)
        for (int i = 0; i < CASES; i++) {
            if (!is_asked_for(&cases[i]))
                continue;
            bench_progress("round %d of %d: %s", round + 1, bench.rounds, cases[i].name);
            run_case(&bench, &cases[i], round);
        }
    bench_progress("%s", "");
    bool accounted = report(&bench);
    bench_write(&bench.metrics, "loadgen");
    for (int i = 0; i < TARGETS; i++)
        process_stop(&bench.servers[i], 2000);
    bench_lab_close(&bench.lab);
    return accounted ? 0 : 1;
}
