// SPDX-License-Identifier: MIT
//
// What the `events` backend costs: ns per recorded event by group of programs, and how much of a
// closed-loop loopback exchange the whole set takes. Each round runs every variant once, one after
// the other on one core, so that a machine that changes under way changes for all alike.
//
// What disturbs exchanges only makes them longer, so a figure comes from the fastest hundred in a
// row of each variant, which is over before another program has the core; how far it is to be
// trusted shows in the same figure of each third of the rounds, whose least and greatest are
// printed with it.
//
//     bench_events [ROUNDS]        writes $BUILD/bench/events.json
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
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
#include "profiler/events/events_capture.h"
#include "profiler/events/receive_stamps.h"

enum {
    PORT = 21310,
    EXCHANGES = 4000,
    EXCHANGES_AT_ONCE = 100,
    BLOCKS = 3,
    MAX_ROUNDS = 300,
    REQUEST_BYTES = 60
};

struct variant {
    const char *name;
    unsigned groups; // 0: no capture
    bool stamps;     // just the kernel's receive stamps, which the capture of M(n) turns on
};

static const struct variant variants[] = {
    {"nothing", 0, false},
    {"stamps", 0, true},
    {"scheduler", EVENT_GROUP_SCHEDULER, false},
    {"interrupts", EVENT_GROUP_INTERRUPTS, false},
    {"receive", EVENT_GROUP_RECEIVE | EVENT_GROUP_CONNECTIONS, false},
    {"transmit", EVENT_GROUP_TRANSMIT | EVENT_GROUP_CONNECTIONS, false},
    {"receive_calls", EVENT_GROUP_RECEIVE | EVENT_GROUP_CALLS | EVENT_GROUP_CONNECTIONS, false},
    {"all", EVENT_GROUPS_DEFAULT, false},
    {"all_calls", EVENT_GROUPS_ALL, false},
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
    enum receive_stamps_state stamps;
    int stamps_fd = -1;
    if (variants[v].groups && events_capture_open(&settings, &capture, &err) < 0)
        exit(error_report(&err));
    if (variants[v].stamps && (stamps_fd = receive_stamps_hold(&stamps, &err)) < 0)
        exit(error_report(&err));
    exchange(client, EXCHANGES / 10);
    double fastest = INFINITY;
    for (int done = 0; done < EXCHANGES; done += EXCHANGES_AT_ONCE) {
        double began = now_ns();
        exchange(client, EXCHANGES_AT_ONCE);
        fastest = fmin(fastest, (now_ns() - began) / EXCHANGES_AT_ONCE);
    }
    result->ns_per_exchange[v][result->rounds] = fastest;
    if (stamps_fd >= 0)
        close(stamps_fd);
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

static double least(const double *values, int from, int to)
{
    double best = values[from];
    for (int r = from + 1; r < to; r++)
        best = values[r] < best ? values[r] : best;
    return best;
}

enum figure { NS_PER_EVENT, SLOWDOWN_PERCENT, EXCHANGE_NS, EVENTS_PER_EXCHANGE };

// One figure of one variant from the rounds [from, to).
static double figure_of(const struct result *result, enum figure figure, size_t v, int from, int to)
{
    double plain = least(result->ns_per_exchange[0], from, to);
    double with = least(result->ns_per_exchange[v], from, to);
    double events = least(result->events_per_exchange[v], from, to);
    switch (figure) {
    case NS_PER_EVENT:
        return (with - plain) / events;
    case SLOWDOWN_PERCENT:
        return (with / plain - 1) * 100;
    case EVENTS_PER_EXCHANGE:
        return events;
    case EXCHANGE_NS:
        break;
    }
    return with;
}

static void add_metric(json_t *metrics, const struct result *result, enum figure figure, size_t v)
{
    static const struct {
        const char *name, *unit;
    } words[] = {{"ns_per_event", "ns"},
                 {"slowdown", "%"},
                 {"exchange_ns", "ns"},
                 {"events_per_exchange", "events"}};
    char name[64];
    double blocks[BLOCKS], value = figure_of(result, figure, v, 0, result->rounds);
    for (int b = 0; b < BLOCKS; b++)
        blocks[b] = figure_of(result, figure, v, result->rounds * b / BLOCKS,
                              result->rounds * (b + 1) / BLOCKS);
    quantile_sort(blocks, BLOCKS);
    snprintf(name, sizeof name, "%s_%s", variants[v].name, words[figure].name);
    json_object_set_new(metrics, name,
                        json_pack("{s:f, s:s, s:i, s:f, s:f}", "value", value, "unit",
                                  words[figure].unit, "runs", result->rounds, "min", blocks[0],
                                  "max", blocks[BLOCKS - 1]));
    printf("  %-34s %10.1f %-8s [%.1f, %.1f]\n", name, value, words[figure].unit, blocks[0],
           blocks[BLOCKS - 1]);
}

static json_t *summarise(const struct result *result)
{
    json_t *metrics = json_object();
    add_metric(metrics, result, EXCHANGE_NS, 0);
    for (size_t v = 1; v < VARIANTS; v++) {
        if (variants[v].groups) {
            add_metric(metrics, result, EVENTS_PER_EXCHANGE, v);
            add_metric(metrics, result, NS_PER_EVENT, v);
        }
        add_metric(metrics, result, SLOWDOWN_PERCENT, v);
    }
    return metrics;
}

int main(int argc, char **argv)
{
    static struct result result;
    int rounds = argc > 1 ? atoi(argv[1]) : 30;
    const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
    char dir[] = "/tmp/prof-bench-XXXXXX", path[4200];
    if (rounds < BLOCKS || rounds > MAX_ROUNDS) {
        fprintf(stderr, "bench_events: rounds must be %d to %d\n", BLOCKS, MAX_ROUNDS);
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
