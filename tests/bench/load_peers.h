// SPDX-License-Identifier: MIT
//
// The peers of the load generator's benchmark: how each is run for a case, and what it came to.
// Those that Debian has are installed by `make bench`; memtier_benchmark and mutilate are run where
// PEERS names a folder in which they were built.
#ifndef TESTS_BENCH_LOAD_PEERS_H
#define TESTS_BENCH_LOAD_PEERS_H

#include <glob.h>
#include <limits.h>

#include "tests/bench/bench.h"
#include "tests/bench/h2load.h"
#include "tests/bench/memtier.h"
#include "tests/bench/mutilate.h"
#include "tests/bench/s_time.h"

enum {
    REDIS_PORT = 22441,
    MEMCACHED_PORT = 22442,
    NGINX_PORT = 22443,
    HTTP2_PORT = 22444,
    TLS_PORT = 22445,      // of NGINX, either HTTP
    TLS_ONCE_PORT = 22446, // whose connections end behind their first reply
};

enum target { REDIS, MEMCACHED, NGINX, TARGETS };

struct bench {
    struct bench_lab lab;
    struct process servers[TARGETS];
    struct bench_metrics metrics;
    double seconds;
    int rounds;
};

// Of connections: those that stay make theirs once.
enum handshakes { STAYING, FULL_HANDSHAKES, RESUMED_HANDSHAKES };

struct load_case;

struct load_peer {
    const char *name, *program;
    struct peer_result (*run)(struct bench *bench, const struct load_case *load,
                              struct bench_outcome *outcome);
    bool is_built; // by whoever runs the benchmark, instead of installed
    bool spins;    // all the time: what a request costs cannot be told
};

struct load_case {
    const char *name, *protocol;
    enum target target;
    uint16_t port;
    int depth;
    const struct load_peer *const *peers; // NULL-terminated
    const char *workload;
    enum handshakes handshakes;
};

// --- installed -----------------------------------------------------------------------------------

static struct peer_result run_redis_benchmark(struct bench *bench, const struct load_case *load,
                                              struct bench_outcome *outcome)
{
    struct bench_command command;
    const int depth = load->depth;
    struct peer_result result = {.requests = bench->seconds * (depth == 1 ? 60e3 : 500e3)};
    bench_command(
        &command, "redis-benchmark -h %s -p %d -t get -c 16 -d 200 -r %d -P %d -n %.0f --csv",
        bench_server_address(&bench->lab), REDIS_PORT, BENCH_KEYS, depth, result.requests);
    bench_run(&bench->lab, &command, &bench->servers[REDIS], outcome);
    const char *row = strstr(outcome->output, "\"GET\"");
    if (!row || sscanf(row, "\"GET\",\"%lf\"", &result.rate) != 1)
        bench_fail("redis-benchmark did not print its table");
    return result;
}

// memaslap does not pipeline.
static struct peer_result run_memaslap(struct bench *bench, const struct load_case *load,
                                       struct bench_outcome *outcome)
{
    struct bench_command command;
    struct peer_result result;
    (void)load;
    bench_command(&command, "memcaslap -s %s:%d -T 1 -c 16 -w 1k -X 200 -t %.0fs",
                  bench_server_address(&bench->lab), MEMCACHED_PORT, ceil(bench->seconds));
    bench_run(&bench->lab, &command, &bench->servers[MEMCACHED], outcome);
    const char *row = strstr(outcome->output, "Run time:");
    if (!row ||
        sscanf(row, "Run time: %*[^ ] Ops: %lf TPS: %lf", &result.requests, &result.rate) != 2)
        bench_fail("memaslap did not print its result");
    return result;
}

static bool is_over_tls(const struct load_case *load)
{
    return load->port == TLS_PORT || load->port == TLS_ONCE_PORT;
}

static const char *scheme_of(const struct load_case *load)
{
    return is_over_tls(load) ? "https" : "http";
}

// wrk pipelines what a script gives it in one piece, and counts the replies.
static struct peer_result run_wrk(struct bench *bench, const struct load_case *load,
                                  struct bench_outcome *outcome)
{
    struct bench_command command;
    struct peer_result result;
    char script[128];
    snprintf(script, sizeof script, "%s/pipeline.lua", bench->lab.dir);
    FILE *file = fopen(script, "w");
    if (!file ||
        fprintf(file,
                "init = function() piece = string.rep(wrk.format(), %d) end\n"
                "request = function() return piece end\n",
                load->depth) < 0 ||
        fclose(file) != 0)
        bench_fail("cannot write %s", script);
    bench_command(&command, "wrk -t 1 -c 16 -d %.0f%s%s %s://%s:%d/", ceil(bench->seconds),
                  load->depth > 1 ? " -s " : "", load->depth > 1 ? script : "", scheme_of(load),
                  bench_server_address(&bench->lab), load->port);
    bench_run(&bench->lab, &command, &bench->servers[NGINX], outcome);
    const char *count = strstr(outcome->output, "requests in"), *begin = count;
    const char *rate = strstr(outcome->output, "Requests/sec:");
    while (begin && begin > outcome->output && begin[-1] != '\n')
        begin--;
    if (!begin || !rate || sscanf(begin, "%lf", &result.requests) != 1 ||
        sscanf(rate, "Requests/sec: %lf", &result.rate) != 1)
        bench_fail("wrk did not print its result");
    return result;
}

static struct peer_result run_h2load(struct bench *bench, const struct load_case *load,
                                     struct bench_outcome *outcome)
{
    struct error err;
    struct bench_command command;
    struct peer_result result;
    bench_command(&command, "h2load -t 1 -c 16 -m %d -D %.0f %s://%s:%d/", load->depth,
                  ceil(bench->seconds), scheme_of(load), bench_server_address(&bench->lab),
                  load->port);
    bench_run(&bench->lab, &command, &bench->servers[NGINX], outcome);
    if (h2load_read(outcome->output, &result, &err) < 0)
        bench_fail("%s", err.text);
    return result;
}

static struct peer_result run_s_time(struct bench *bench, const struct load_case *load,
                                     struct bench_outcome *outcome)
{
    struct error err;
    struct bench_command command;
    struct peer_result result;
    const bool resumed = load->handshakes == RESUMED_HANDSHAKES;
    bench_command(&command, "openssl s_time -tls1_3 %s -www / -time %.0f -connect %s:%d",
                  resumed ? "-reuse" : "-new", ceil(bench->seconds),
                  bench_server_address(&bench->lab), load->port);
    bench_run(&bench->lab, &command, &bench->servers[NGINX], outcome);
    if (s_time_read(outcome->output, resumed, &result.requests, &err) < 0)
        bench_fail("%s", err.text);
    result.rate = result.requests / outcome->wall_s;
    return result;
}

static const struct load_peer peer_redis_benchmark = {
    .name = "redis-benchmark", .program = "redis-benchmark", .run = run_redis_benchmark};
static const struct load_peer peer_memaslap = {
    .name = "memaslap", .program = "memcaslap", .run = run_memaslap}; // as Debian calls it
static const struct load_peer peer_wrk = {.name = "wrk", .program = "wrk", .run = run_wrk};
static const struct load_peer peer_h2load = {
    .name = "h2load", .program = "h2load", .run = run_h2load};
static const struct load_peer peer_s_time = {
    .name = "openssl s_time", .program = "openssl", .run = run_s_time};

// --- built ---------------------------------------------------------------------------------------

// Where the lab has a link to it.
static void find_in_lab(const struct bench *bench, const char *program, char path[100])
{
    snprintf(path, 100, "%s/%s", bench->lab.dir, program);
}

// Its keys are a prefix and a number: 16 bytes of Redis', 64 of memcached's, as with the others.
static void memtier_command(struct bench *bench, enum target target, const char *asked,
                            struct bench_command *command)
{
    char program[100], prefix[60];
    find_in_lab(bench, "memtier_benchmark", program);
    memset(prefix, 'k', sizeof prefix);
    prefix[target == REDIS ? 12 : sizeof prefix - 1] = '\0';
    bench_command(command,
                  "%s -s %s -p %d -P %s --key-prefix %s --key-minimum 1 --key-maximum %d -d 200 "
                  "-t 1 --hide-histogram --distinct-client-seed %s",
                  program, bench_server_address(&bench->lab),
                  target == REDIS ? REDIS_PORT : MEMCACHED_PORT,
                  target == REDIS ? "redis" : "memcache_text", prefix, BENCH_KEYS, asked);
}

static struct peer_result run_memtier(struct bench *bench, const struct load_case *load,
                                      struct bench_outcome *outcome)
{
    struct error err;
    struct bench_command command;
    struct peer_result result;
    char asked[100], path[100], progress[20000];
    const double seconds = ceil(bench->seconds);
    snprintf(asked, sizeof asked, "-c 16 --pipeline %d --ratio %s --test-time %.0f", load->depth,
             load->target == REDIS ? "0:1" : "1:9", seconds);
    memtier_command(bench, load->target, asked, &command);
    bench_run(&bench->lab, &command, &bench->servers[load->target], outcome);
    find_in_lab(bench, "client.log", path); // which has what it said on stderr at its end
    FILE *file = fopen(path, "r");
    if (file && fseek(file, 1 - (long)sizeof progress, SEEK_END) < 0)
        rewind(file);
    progress[file ? fread(progress, 1, sizeof progress - 1, file) : 0] = '\0';
    if (file)
        fclose(file);
    if (memtier_read(outcome->output, progress, &result.requests, &err) < 0)
        bench_fail("%s", err.text);
    result.rate = result.requests / seconds;
    return result;
}

static void mutilate_command(struct bench *bench, const char *asked, struct bench_command *command)
{
    char program[100];
    find_in_lab(bench, "mutilate", program);
    bench_command(command, "%s -s %s:%d -K 64 -V 200 -r %d -T 1 %s", program,
                  bench_server_address(&bench->lab), MEMCACHED_PORT, BENCH_KEYS, asked);
}

static struct peer_result mutilate(struct bench *bench, const struct load_case *load,
                                   const char *how, struct bench_outcome *outcome)
{
    struct error err;
    struct bench_command command;
    struct peer_result result;
    char asked[100];
    snprintf(asked, sizeof asked, "-c 16 -d %d -u 0.1 -t %.0f --noload %s", load->depth,
             ceil(bench->seconds), how);
    mutilate_command(bench, asked, &command);
    bench_run(&bench->lab, &command, &bench->servers[load->target], outcome);
    if (mutilate_read(outcome->output, &result, &err) < 0)
        bench_fail("%s", err.text);
    return result;
}

static struct peer_result run_mutilate(struct bench *bench, const struct load_case *load,
                                       struct bench_outcome *outcome)
{
    return mutilate(bench, load, "", outcome);
}

static struct peer_result run_mutilate_waiting(struct bench *bench, const struct load_case *load,
                                               struct bench_outcome *outcome)
{
    return mutilate(bench, load, "-B", outcome);
}

static const struct load_peer peer_memtier = {.name = "memtier_benchmark",
                                              .program = "memtier_benchmark",
                                              .run = run_memtier,
                                              .is_built = true};
static const struct load_peer peer_mutilate = {.name = "mutilate",
                                               .program = "mutilate",
                                               .run = run_mutilate,
                                               .is_built = true,
                                               .spins = true};
static const struct load_peer peer_mutilate_waiting = {
    .name = "mutilate -B", .program = "mutilate", .run = run_mutilate_waiting, .is_built = true};

// As a pattern that only that folder matches, whatever its name has in it.
static void folder_pattern(const char *folder, char pattern[static PATH_MAX])
{
    size_t count = 0;
    for (; *folder && count + 2 < PATH_MAX; folder++) {
        if (strchr("*?[]\\", *folder))
            pattern[count++] = '\\';
        pattern[count++] = *folder;
    }
    pattern[count] = '\0';
}

// Links what was built below the folder PEERS, at most two folders down, into the lab.
static bool find_built(const struct bench *bench, const char *folder, const char *program)
{
    static const char *const places[] = {"%s/%s", "%s/*/%s", "%s/*/*/%s"};
    bool found = false;
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        char literal[PATH_MAX], pattern[2 * PATH_MAX], link[100], *whole;
        glob_t paths;
        folder_pattern(folder, literal);
        snprintf(pattern, sizeof pattern, places[i], literal, program);
        if (glob(pattern, 0, NULL, &paths) != 0)
            continue;
        find_in_lab(bench, program, link);
        for (size_t path = 0; path < paths.gl_pathc && !found; path++) {
            struct stat status;
            found = stat(paths.gl_pathv[path], &status) == 0 && S_ISREG(status.st_mode) &&
                    access(paths.gl_pathv[path], X_OK) == 0;
            if (!found)
                continue;
            whole = realpath(paths.gl_pathv[path], NULL);
            if (!whole || symlink(whole, link) < 0)
                bench_fail("%s: %s", link, strerror(errno));
            free(whole);
        }
        globfree(&paths);
    }
    return found;
}

static bool is_present(const struct bench *bench, const struct load_peer *peer)
{
    char path[100];
    find_in_lab(bench, peer->program, path);
    return !peer->is_built || access(path, X_OK) == 0;
}

// Says which of them are left out; ends with 2 where PEERS names a folder without any.
static void find_built_peers(const struct bench *bench)
{
    const char *folder = getenv("PEERS");
    const struct load_peer *const built[] = {&peer_memtier, &peer_mutilate};
    int found = 0;
    for (size_t i = 0; i < sizeof built / sizeof *built; i++)
        if (folder && find_built(bench, folder, built[i]->program))
            found++;
        else
            printf("without %s: it takes PEERS, a folder in which it was built%s%s\n",
                   built[i]->program, folder ? "; not in " : "", folder ? folder : "");
    if (folder && !found)
        exit(2);
}

// Stores what they will ask for.
static void prepare_built_peers(struct bench *bench)
{
    static struct bench_outcome outcome;
    struct bench_command command;
    if (is_present(bench, &peer_mutilate)) {
        mutilate_command(bench, "--loadonly", &command);
        bench_run(&bench->lab, &command, &bench->servers[MEMCACHED], &outcome);
        if (outcome.exit_code != 0)
            bench_fail("mutilate stores nothing: %s", outcome.said);
    }
    for (enum target target = REDIS; target <= MEMCACHED && is_present(bench, &peer_memtier);
         target++) {
        memtier_command(bench, target, "-c 1 --ratio 1:0 --key-pattern P:P -n allkeys", &command);
        bench_run(&bench->lab, &command, &bench->servers[target], &outcome);
        if (outcome.exit_code != 0)
            bench_fail("memtier_benchmark stores nothing: %s", outcome.said);
    }
}

#endif
