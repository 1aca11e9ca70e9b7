// SPDX-License-Identifier: MIT
//
// What the benchmarks of the load generator share: two hosts of an experiment (a client on core 1,
// a server on core 0, each in a network namespace, with RPS putting what each receives onto its own
// core), programs run there with what they cost, and the table of figures that becomes
// $BUILD/bench/<name>.json. Whatever fails ends the benchmark.
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log_file.h"
#include "base/process.h"
#include "base/quantile.h"
#include "base/text.h"
#include "experiments/hosts/host.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/hosts/tuning.h"
#include "loadgen/client/sample_log.h"

enum {
    BENCH_ROUNDS_MAX = 50,
    BENCH_WORDS_MAX = 40,
    BENCH_OUTPUT_BYTES = 1 << 18,
    BENCH_PATIENCE_MS = 120000,
    BENCH_KEYS = 10000,
    BENCH_CLIENT_CORE = 1,
    BENCH_SERVER_CORE = 0,
};

enum bench_side { BENCH_CLIENT, BENCH_SERVER, BENCH_SIDES };

__attribute__((noreturn, format(printf, 1, 2))) static inline void bench_fail(const char *format,
                                                                              ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "\r\033[K");
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static inline const char *bench_build(void)
{
    const char *build = getenv("BUILD");
    return build ? build : "build";
}

// One line on a terminal that says where the benchmark is; a log gets the tables alone.
__attribute__((format(printf, 1, 2))) static inline void bench_progress(const char *format, ...)
{
    va_list arguments;
    if (!isatty(STDERR_FILENO))
        return;
    va_start(arguments, format);
    fprintf(stderr, "\r\033[K");
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}

static inline void bench_write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        bench_fail("cannot write %s: %s", path, strerror(errno));
}

// Ends with 77 and the reason unless all these programs are installed. NULL-terminated.
static inline void bench_need(const char *first, ...) __attribute__((sentinel));
static inline void bench_need(const char *first, ...)
{
    va_list names;
    va_start(names, first);
    for (const char *name = first; name; name = va_arg(names, const char *)) {
        char path[100];
        bool found = false;
        static const char *const folders[] = {"/usr/bin", "/usr/sbin", "/usr/local/bin"};
        for (int i = 0; i < 3; i++) {
            snprintf(path, sizeof path, "%s/%s", folders[i], name);
            found |= access(path, X_OK) == 0;
        }
        if (!found) {
            printf("%s is not installed: make bench installs it\n", name);
            exit(77);
        }
    }
    va_end(names);
}

// A number from the environment: BENCH_ROUNDS, BENCH_SECONDS, ...
static inline double bench_setting(const char *name, double otherwise, double least, double most)
{
    const char *text = getenv(name);
    double value = text ? atof(text) : otherwise;
    return value < least ? least : value > most ? most : value;
}

// --- figures -------------------------------------------------------------------------------------

struct bench_metric {
    char name[80], unit[24];
    double values[BENCH_ROUNDS_MAX];
    int count;
};

struct bench_metrics ARRAY_OF(struct bench_metric);

// Adds one round's value to the metric of that name.
static inline void bench_add(struct bench_metrics *metrics, const char *unit, double value,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));
static inline void bench_add(struct bench_metrics *metrics, const char *unit, double value,
                             const char *format, ...)
{
    char name[80];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    size_t at = 0;
    while (at < metrics->count && strcmp(metrics->items[at].name, name) != 0)
        at++;
    if (at == metrics->count) {
        struct bench_metric added = {.count = 0};
        snprintf(added.name, sizeof added.name, "%s", name);
        snprintf(added.unit, sizeof added.unit, "%s", unit);
        if (array_push(metrics, added) < 0)
            bench_fail("out of memory for the figures");
    }
    struct bench_metric *metric = &metrics->items[at];
    if (metric->count == BENCH_ROUNDS_MAX)
        bench_fail("%s: more than %d rounds", name, BENCH_ROUNDS_MAX);
    if (isfinite(value))
        metric->values[metric->count++] = value;
}

// The q-quantile over a metric's rounds; NaN when there is no such metric.
static inline double bench_quantile(const struct bench_metrics *metrics, double q,
                                    const char *format, ...) __attribute__((format(printf, 3, 4)));
static inline double bench_quantile(const struct bench_metrics *metrics, double q,
                                    const char *format, ...)
{
    char name[80];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < metrics->count; i++) {
        struct bench_metric sorted = metrics->items[i];
        if (strcmp(sorted.name, name) != 0)
            continue;
        quantile_sort(sorted.values, (size_t)sorted.count);
        return quantile_sorted(sorted.values, (size_t)sorted.count, q);
    }
    return NAN;
}

// The value that a metric got last; NaN when it has none.
static inline double bench_latest(const struct bench_metrics *metrics, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline double bench_latest(const struct bench_metrics *metrics, const char *format, ...)
{
    char name[80];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < metrics->count; i++)
        if (strcmp(metrics->items[i].name, name) == 0 && metrics->items[i].count)
            return metrics->items[i].values[metrics->items[i].count - 1];
    return NAN;
}

#define bench_median(metrics, ...) bench_quantile(metrics, 0.5, __VA_ARGS__)

static inline void bench_write(const struct bench_metrics *metrics, const char *name)
{
    char path[400];
    json_t *all = json_object();
    for (size_t i = 0; i < metrics->count; i++) {
        struct bench_metric sorted = metrics->items[i];
        size_t count = (size_t)sorted.count;
        if (!count)
            continue;
        quantile_sort(sorted.values, count);
        json_object_set_new(all, sorted.name,
                            json_pack("{s:f, s:s, s:i, s:f, s:f}", "value",
                                      quantile_sorted(sorted.values, count, 0.5), "unit",
                                      sorted.unit, "runs", sorted.count, "min", sorted.values[0],
                                      "max", sorted.values[count - 1]));
    }
    json_t *document = json_pack("{s:s, s:o}", "name", name, "metrics", all);
    snprintf(path, sizeof path, "%s/bench", bench_build());
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/bench/%s.json", bench_build(), name);
    if (json_dump_file(document, path, JSON_INDENT(2)) < 0)
        bench_fail("cannot write %s", path);
    json_decref(document);
}

// --- the two hosts -------------------------------------------------------------------------------

struct bench_lab {
    struct experiment plan;
    struct experiment_host host_plans[BENCH_SIDES];
    struct experiment_setting settings[BENCH_SIDES];
    struct host_array hosts;
    char dir[64];
    bool loopback; // clients run in the server's namespace, on their own core as ever
};

// Two hosts on a veth cable whose TCP uses that congestion control. Ends with 77 where that cannot
// be had: it takes root and two cores.
static inline void bench_lab_open(struct bench_lab *lab, const char *congestion_control)
{
    struct command_log no_log = {0};
    struct error degraded, err;
    if (geteuid() != 0 || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        printf("needs root and two cores: it puts client and server into network namespaces\n");
        exit(77);
    }
    memset(lab, 0, sizeof *lab);
    static const char *const names[BENCH_SIDES] = {"client", "server"};
    for (int side = 0; side < BENCH_SIDES; side++) {
        struct experiment_host *host = &lab->host_plans[side];
        host->kind = &host_netns;
        snprintf(host->name, sizeof host->name, "%s", names[side]);
        CPU_SET(side == BENCH_CLIENT ? BENCH_CLIENT_CORE : BENCH_SERVER_CORE, &host->cores);
        struct experiment_setting *setting = &lab->settings[side];
        *setting = (struct experiment_setting){
            .host = (size_t)side, .kind = TUNING_SYSCTL, .name = "net.ipv4.tcp_congestion_control"};
        snprintf(setting->value, sizeof setting->value, "%s", congestion_control);
    }
    lab->plan.hosts.items = lab->host_plans;
    lab->plan.hosts.count = BENCH_SIDES;
    lab->plan.settings.items = lab->settings;
    lab->plan.settings.count = BENCH_SIDES;
    if (hosts_start(&lab->hosts, &lab->plan, NULL, &no_log, &degraded, &err) < 0)
        exit(error_report(&err));
    if (!lab->hosts.items[0].netns[0]) {
        printf("no network namespaces here: %s\n", degraded.text);
        exit(77);
    }
    json_t *tuned = json_array();
    if (tuning_apply(&lab->hosts, &lab->plan, "", &no_log, tuned, &err) < 0)
        exit(error_report(&err));
    for (size_t i = 0; i < json_array_size(tuned); i++)
        if (!json_is_true(json_object_get(json_array_get(tuned, i), "applied"))) {
            printf("TCP cannot use %s here\n", congestion_control);
            exit(77);
        }
    json_decref(tuned);
    snprintf(lab->dir, sizeof lab->dir, "/tmp/taillight-bench-XXXXXX");
    if (!mkdtemp(lab->dir))
        bench_fail("cannot make a folder in /tmp: %s", strerror(errno));
}

static inline void bench_lab_close(struct bench_lab *lab)
{
    struct command_log no_log = {0};
    struct error err;
    const char *const clear[] = {"rm", "-rf", lab->dir, NULL};
    process_run(clear, NULL, 10000, NULL, 0, NULL);
    if (hosts_end(&lab->hosts, false, &no_log, &err) < 0)
        exit(error_report(&err));
}

static inline const char *bench_server_address(const struct bench_lab *lab)
{
    return lab->hosts.items[BENCH_SERVER].address;
}

// --- programs ------------------------------------------------------------------------------------

// A command, word by word; words are separated by single spaces and not quoted.
struct bench_command {
    char text[1000];
    const char *words[BENCH_WORDS_MAX + 1];
};

__attribute__((format(printf, 2, 3))) static inline void
bench_command(struct bench_command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(command->text, sizeof command->text, format, arguments);
    va_end(arguments);
    if (bytes < 0 || (size_t)bytes >= sizeof command->text)
        bench_fail("a command is too long");
    int count = 0;
    char *rest = command->text;
    for (char *word; count < BENCH_WORDS_MAX && (word = strsep(&rest, " "));)
        if (*word)
            command->words[count++] = word;
    command->words[count] = NULL;
}

// Starts a server and waits until it listens.
static inline void bench_serve(struct bench_lab *lab, struct process *process, uint16_t port,
                               const struct bench_command *command)
{
    char log[100];
    struct error err;
    struct process_place place = host_place(&lab->hosts.items[BENCH_SERVER], NULL);
    snprintf(log, sizeof log, "%s/server.log", lab->dir);
    place.log_path = log;
    if (process_start(process, command->words, &place, &err) < 0)
        exit(error_report(&err));
    for (int i = 0; i < 100; i++) {
        int listens = keeper_probe(&lab->hosts.items[BENCH_CLIENT].keeper,
                                   bench_server_address(lab), port, &err);
        if (listens < 0)
            exit(error_report(&err));
        if (listens)
            return;
        usleep(50000);
    }
    bench_fail("%s does not listen on port %u; see %s", command->words[0], port, log);
}

static inline void bench_serve_redis(struct bench_lab *lab, struct process *process, uint16_t port)
{
    struct bench_command command;
    bench_command(&command,
                  "redis-server --bind %s --port %d --protected-mode no --save --appendonly no "
                  "--dir %s",
                  bench_server_address(lab), port, lab->dir);
    bench_serve(lab, process, port, &command);
}

// Where NGINX listens: HTTP/1.1 and HTTP/2 over TCP, either over TLS 1.3, and HTTP/1.1 over TLS 1.3
// that ends each connection behind its first reply. 0: nowhere.
struct bench_nginx_ports {
    uint16_t http, http2, tls, tls_once;
};

// Adds a server that answers every GET with 200 bytes from memory.
static inline void bench_nginx_listens(const struct bench_lab *lab, uint16_t port, const char *how,
                                       char *text, size_t bytes)
{
    char body[201];
    memset(body, 'x', 200);
    body[200] = '\0';
    if (port)
        text_append(text, bytes, "server { listen %s:%d%s; location / { return 200 \"%s\"; } }\n",
                    bench_server_address(lab), port, how, body);
}

// One worker.
static inline void bench_serve_nginx(struct bench_lab *lab, struct process *process,
                                     struct bench_nginx_ports ports)
{
    char path[100], text[3000];
    struct bench_command command;
    snprintf(path, sizeof path, "%s/nginx.conf", lab->dir);
    snprintf(text, sizeof text,
             "user root; master_process off; daemon off; pid %s/nginx.pid; error_log stderr;\n"
             "events { worker_connections 1024; }\n"
             "http { access_log off; keepalive_requests 1000000000;\n",
             lab->dir);
    if (ports.tls || ports.tls_once)
        text_append(text, sizeof text,
                    "ssl_protocols TLSv1.3; ssl_certificate %s/cert.pem; "
                    "ssl_certificate_key %s/key.pem;\n",
                    lab->dir, lab->dir);
    bench_nginx_listens(lab, ports.http, "", text, sizeof text);
    bench_nginx_listens(lab, ports.http2, " http2", text, sizeof text);
    bench_nginx_listens(lab, ports.tls, " ssl http2", text, sizeof text);
    bench_nginx_listens(lab, ports.tls_once, " ssl; keepalive_requests 1", text, sizeof text);
    text_append(text, sizeof text, "}\n");
    bench_write_text(path, text);
    bench_command(&command, "nginx -c %s -p %s", path, lab->dir);
    bench_serve(lab, process, ports.http, &command);
}

// What a program that ended said and took.
struct bench_outcome {
    int exit_code;
    double cpu_s;    // user and system time of all its threads
    double server_s; // the same of the server meanwhile
    double wall_s;
    char said[300]; // the last line on stderr, of bench_run
    char output[BENCH_OUTPUT_BYTES];
};

static inline double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// User and system time of a process so far, in ns resolution.
static inline double bench_cpu_of(const struct process *process)
{
    char path[64];
    clockid_t clock;
    struct timespec used;
    snprintf(path, sizeof path, "/proc/%d", process->pid);
    if (clock_getcpuclockid(process->pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
        bench_fail("%s is gone: the server died", path);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

// Begins a program on the client's host. Its stdout is read by bench_finish.
static inline void bench_start(struct bench_lab *lab, struct process *process,
                               const struct bench_command *command)
{
    char log[100];
    struct error err;
    struct process_place place = host_place(&lab->hosts.items[BENCH_CLIENT], NULL);
    if (lab->loopback)
        place.netns = lab->hosts.items[BENCH_SERVER].netns;
    snprintf(log, sizeof log, "%s/client.log", lab->dir);
    place.log_path = log;
    place.pipe_output = true;
    if (process_start(process, command->words, &place, &err) < 0)
        exit(error_report(&err));
}

static inline void bench_finish(struct process *process, struct bench_outcome *out)
{
    size_t used = 0;
    int status;
    struct rusage usage;
    for (ssize_t got; used < sizeof out->output - 1; used += (size_t)got) {
        struct pollfd ready = {.fd = process->output, .events = POLLIN};
        if (poll(&ready, 1, BENCH_PATIENCE_MS) == 0)
            bench_fail("a program says nothing and does not end");
        got = read(process->output, out->output + used, sizeof out->output - 1 - used);
        if (got <= 0)
            break;
    }
    out->output[used] = '\0';
    if (wait4(process->pid, &status, 0, &usage) != process->pid)
        bench_fail("cannot wait for a program: %s", strerror(errno));
    process->pid = 0;
    process_close_pipes(process);
    out->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    out->cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// Runs a program on the client's host to its end, and measures it and the server.
static inline void bench_run(struct bench_lab *lab, const struct bench_command *command,
                             const struct process *server, struct bench_outcome *out)
{
    struct process process;
    double server_s = bench_cpu_of(server), began = bench_now();
    bench_start(lab, &process, command);
    bench_finish(&process, out);
    out->wall_s = bench_now() - began;
    char log[100];
    snprintf(log, sizeof log, "%s/client.log", lab->dir);
    command_log_last_line(log, out->said, sizeof out->said);
    out->server_s = bench_cpu_of(server) - server_s;
}

// --- taillight load ------------------------------------------------------------------------------

// Its --json document. Inconclusive (4) is an outcome too: these loads may ask too much.
static inline json_t *bench_load_json(const struct bench_outcome *outcome,
                                      const struct bench_command *command)
{
    json_t *json = json_loads(outcome->output, 0, NULL);
    if (!json || (outcome->exit_code != 0 && outcome->exit_code != 4))
        bench_fail("%s: exit %d: %s", command->words[0], outcome->exit_code, outcome->said);
    return json;
}

// A number at a path like "latency_us/p99.9"; NaN where it is null or absent.
static inline double bench_json_number(const json_t *json, const char *path)
{
    char name[100];
    snprintf(name, sizeof name, "%s", path);
    char *rest = name;
    for (char *key; json && (key = strsep(&rest, "/"));)
        json = json_object_get(json, key);
    return json_is_number(json) ? json_number_value(json) : NAN;
}

// Opens a log that `taillight load --samples DIR` left in the lab's folder.
static inline void bench_log(const struct bench_lab *lab, const char *name, enum log_kind kind,
                             size_t record_bytes, struct log_reader *reader)
{
    char path[100];
    struct error err;
    snprintf(path, sizeof path, "%s/%s.tlog", lab->dir, name);
    if (log_reader_open(reader, path, kind, SAMPLE_LOG_VERSION, record_bytes, &err) < 0)
        exit(error_report(&err));
}

#endif
