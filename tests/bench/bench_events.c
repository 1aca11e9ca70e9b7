// SPDX-License-Identifier: MIT
//
// What the `events` backend costs: ns per recorded event by group of programs, and how much of a
// closed-loop loopback exchange the whole set takes. Each round runs every variant once, one after
// the other on one core, so that a machine that changes under way changes for all alike.
//
//     bench_events [ROUNDS]        writes $BUILD/bench/events.json
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/quantile.h"
#include "profiler/events_capture.h"

enum { PORT = 21310, EXCHANGES = 20000, MAX_ROUNDS = 100, REQUEST_BYTES = 60 };

struct variant {
    const char *name;
    unsigned groups; // 0: no capture
};

static const struct variant variants[] = {
    {"nothing", 0},
    {"scheduler", EVENT_GROUP_SCHEDULER},
    {"interrupts", EVENT_GROUP_INTERRUPTS},
    {"receive", EVENT_GROUP_RECEIVE | EVENT_GROUP_CONNECTIONS},
    {"transmit", EVENT_GROUP_TRANSMIT | EVENT_GROUP_CONNECTIONS},
    {"all", EVENT_GROUPS_ALL},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

struct result {
    double ns_per_exchange[VARIANTS][MAX_ROUNDS];
    double events_per_exchange[VARIANTS][MAX_ROUNDS];
    int rounds;
};

static void give_up(const char *what)
{
    fprintf(stderr, "bench_events: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

// A server that answers each request with as many bytes, in a process of its own on the same core.
static int start_server(pid_t *child)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1) < 0)
        give_up("listen on 127.0.0.1");
    *child = fork();
    if (*child < 0)
        give_up("fork");
    if (*child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        char data[REQUEST_BYTES];
        int server = accept(listener, NULL, NULL);
        setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        while (recv(server, data, sizeof data, MSG_WAITALL) == sizeof data)
            if (send(server, data, sizeof data, 0) != sizeof data)
                break;
        _exit(0);
    }
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(client, (struct sockaddr *)&address, sizeof address) < 0)
        give_up("connect to 127.0.0.1");
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    close(listener);
    return client;
}

static void exchange(int client, int times)
{
    char data[REQUEST_BYTES] = {0};
    for (int i = 0; i < times; i++)
        if (send(client, data, sizeof data, 0) != sizeof data ||
            recv(client, data, sizeof data, MSG_WAITALL) != sizeof data)
            give_up("exchange with the server");
}

static void run_variant(int client, size_t v, const char *dir, struct result *result)
{
    const uint16_t port = PORT;
    struct events_capture_settings settings = {
        .ports = &port, .port_count = 1, .groups = variants[v].groups};
    struct events_capture *capture = NULL;
    struct error err;
    if (variants[v].groups && events_capture_open(&settings, &capture, &err) < 0)
        exit(error_report(&err));
    exchange(client, EXCHANGES / 10);
    double began = now_ns();
    exchange(client, EXCHANGES);
    result->ns_per_exchange[v][result->rounds] = (now_ns() - began) / EXCHANGES;
    if (!capture)
        return;
    json_t *stats = NULL;
    if (events_capture_stop(capture, dir, &stats, &err) < 0)
        exit(error_report(&err));
    double records = json_number_value(json_object_get(stats, "records"));
    if (json_integer_value(json_object_get(stats, "dropped")))
        fprintf(stderr, "bench_events: %s: records were dropped\n", variants[v].name);
    result->events_per_exchange[v][result->rounds] = records / (EXCHANGES * 1.1);
    json_decref(stats);
    events_capture_free(capture);
}

static double median_of(const double *values, int rounds)
{
    double sorted[MAX_ROUNDS];
    memcpy(sorted, values, (size_t)rounds * sizeof *values);
    quantile_sort(sorted, (size_t)rounds);
    return quantile_sorted(sorted, (size_t)rounds, 0.5);
}

// A figure, and the least and greatest it was in any round.
static void add_metric(json_t *metrics, const char *name, const char *unit, double median,
                       double *values, int rounds)
{
    quantile_sort(values, (size_t)rounds);
    json_object_set_new(metrics, name,
                        json_pack("{s:f, s:s, s:i, s:f, s:f}", "value", median, "unit", unit,
                                  "runs", rounds, "min", values[0], "max", values[rounds - 1]));
    printf("  %-34s %10.1f %-8s [%.1f, %.1f]\n", name, median, unit, values[0], values[rounds - 1]);
}

// The cost of a variant is the difference of medians, which a disturbed round does not move.
static json_t *summarise(struct result *result)
{
    json_t *metrics = json_object();
    int rounds = result->rounds;
    double plain = median_of(result->ns_per_exchange[0], rounds);
    for (size_t v = 1; v < VARIANTS; v++) {
        double cost[MAX_ROUNDS], share[MAX_ROUNDS];
        char name[64];
        double *events = result->events_per_exchange[v];
        double extra = median_of(result->ns_per_exchange[v], rounds) - plain;
        for (int r = 0; r < rounds; r++) {
            double base = result->ns_per_exchange[0][r], with = result->ns_per_exchange[v][r];
            cost[r] = (with - base) / events[r];
            share[r] = (with / base - 1) * 100;
        }
        double each = median_of(events, rounds);
        snprintf(name, sizeof name, "%s_ns_per_event", variants[v].name);
        add_metric(metrics, name, "ns", extra / each, cost, rounds);
        snprintf(name, sizeof name, "%s_events_per_exchange", variants[v].name);
        add_metric(metrics, name, "events", each, events, rounds);
        snprintf(name, sizeof name, "%s_slowdown", variants[v].name);
        add_metric(metrics, name, "%", extra / plain * 100, share, rounds);
    }
    add_metric(metrics, "exchange_ns", "ns", plain, result->ns_per_exchange[0], rounds);
    return metrics;
}

int main(int argc, char **argv)
{
    static struct result result;
    int rounds = argc > 1 ? atoi(argv[1]) : 7;
    const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
    char dir[] = "/tmp/prof-bench-XXXXXX", path[4200];
    if (rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "bench_events: rounds must be 1 to %d\n", MAX_ROUNDS);
        return 2;
    }
    struct events_capture *trial;
    struct events_capture_settings settings = {.ring_bytes = 1};
    struct error err;
    if (events_capture_open(&settings, &trial, &err) < 0) {
        printf("BPF capture is not possible here: %s\n", err.text);
        return 77;
    }
    events_capture_free(trial);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1, &one);
    pid_t child;
    if (sched_setaffinity(0, sizeof one, &one) < 0 || !mkdtemp(dir))
        give_up("set up");
    int client = start_server(&child);
    printf("events: %d exchanges of %d bytes on one core over loopback, %d rounds\n", EXCHANGES,
           REQUEST_BYTES, rounds);
    for (; result.rounds < rounds; result.rounds++)
        for (size_t v = 0; v < VARIANTS; v++)
            run_variant(client, v, dir, &result);
    close(client);
    waitpid(child, NULL, 0);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s.tlog", dir, i ? "sockets" : "events");
        unlink(path);
    }
    rmdir(dir);
    json_t *document = json_pack("{s:s, s:o}", "name", "events", "metrics", summarise(&result));
    snprintf(path, sizeof path, "%s/bench", build);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/bench/events.json", build);
    int failed = json_dump_file(document, path, JSON_INDENT(2));
    if (failed)
        fprintf(stderr, "bench_events: cannot write %s\n", path);
    json_decref(document);
    return failed ? 1 : 0;
}
