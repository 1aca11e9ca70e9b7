// SPDX-License-Identifier: MIT
//
// What the shim adds to a call, in nanoseconds. The program runs itself as a child: plain, with
// the shim loaded and nothing to do (inert), with a collector that has not begun (armed), and
// recording; the four in turn, several rounds, so that the machine's moods fall on all alike. A
// child times blocks of calls and gives each kind's time in the quieter blocks; what is reported
// is the median over the rounds of the difference to the same round's plain child.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "base/quantile.h"
#include "shim/message_collector.h"

enum { ROUNDS = 9, BLOCKS = 150, CALLS = 400, MESSAGE = 16, KINDS = 4, VARIANTS = 4 };
#define QUIET 0.2 // of a child's blocks: what disturbs a block only ever adds to it
enum { PLAIN, INERT, ARMED, RECORDING };

static const char *const kind_names[KINDS] = {"recv", "send", "epoll_wait", "read_unwatched"};
static const char *const variant_names[VARIANTS] = {"plain", "inert", "armed", "recording"};

// --- the child ------------------------------------------------------------------------------

struct ends {
    int client, server, epoll, zero;
};

static int ends_make(struct ends *ends)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    int yes = 1;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    ends->client = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&address, bytes) < 0 || listen(listening, 1) < 0 ||
        getsockname(listening, (struct sockaddr *)&address, &bytes) < 0 ||
        connect(ends->client, (struct sockaddr *)&address, bytes) < 0)
        return -1;
    ends->server = accept(listening, NULL, NULL);
    setsockopt(ends->server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(ends->client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ends->epoll = epoll_create1(0);
    ends->zero = open("/dev/zero", O_RDONLY);
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(ends->epoll, EPOLL_CTL_ADD, ends->server, &event) < 0 ? -1 : 0;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

// One block of one kind; nanoseconds per call. What it needs, and leaves behind, is not timed.
static double block_time(const struct ends *ends, int kind)
{
    char buffer[CALLS * MESSAGE] = {0};
    struct epoll_event event;
    bool fill = kind == 0 || kind == 2;
    if (fill && send(ends->client, buffer, sizeof buffer, 0) != sizeof buffer)
        exit(1);
    if (fill) // all of it is there before the clock starts
        while (recv(ends->server, buffer, sizeof buffer, MSG_PEEK) != sizeof buffer)
            ;
    double begun = now_ns();
    for (int i = 0; i < CALLS; i++) {
        ssize_t result = 0;
        switch (kind) {
        case 0:
            result = recv(ends->server, buffer, MESSAGE, 0);
            break;
        case 1:
            result = send(ends->server, buffer, MESSAGE, MSG_MORE); // without the way to the peer
            break;
        case 2:
            result = epoll_wait(ends->epoll, &event, 1, -1);
            break;
        case 3:
            result = read(ends->zero, buffer, 1);
            break;
        }
        if (result <= 0)
            exit(1);
    }
    double took = now_ns() - begun;
    int flush = 1; // TCP_NODELAY sends what MSG_MORE held back
    if (kind == 1)
        setsockopt(ends->server, IPPROTO_TCP, TCP_NODELAY, &flush, sizeof flush);
    if (kind == 1 && recv(ends->client, buffer, sizeof buffer, MSG_WAITALL) != sizeof buffer)
        exit(1);
    if (kind == 2 && recv(ends->server, buffer, sizeof buffer, MSG_WAITALL) != sizeof buffer)
        exit(1);
    return took / CALLS;
}

static int child(void)
{
    struct ends ends;
    if (ends_make(&ends) < 0)
        return 1;
    double times[KINDS][BLOCKS];
    for (int kind = 0; kind < KINDS; kind++) // the first of each warms up
        block_time(&ends, kind);
    for (int block = 0; block < BLOCKS; block++)
        for (int kind = 0; kind < KINDS; kind++)
            times[kind][block] = block_time(&ends, kind);
    for (int kind = 0; kind < KINDS; kind++) {
        quantile_sort(times[kind], BLOCKS);
        printf("%.3f\n", quantile_sorted(times[kind], BLOCKS, QUIET));
    }
    return 0;
}

// --- the parent -----------------------------------------------------------------------------

struct bench {
    char self[PATH_MAX];
    char preload[PATH_MAX];
    char json[PATH_MAX];
    char dir[64], out[64];
    char environment[128];
    struct message_collector *collector;
    _Atomic bool stop;
    uint64_t calls, dropped;
    double times[VARIANTS][KINDS][ROUNDS];
};

static void *poll_run(void *argument)
{
    struct bench *bench = argument;
    struct error err = {0};
    while (!bench->stop) {
        if (message_collector_poll(bench->collector, &err) < 0)
            error_report(&err);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return NULL;
}

static int child_run(struct bench *bench, int variant, int round, struct error *err)
{
    char out[256];
    const char *argv[] = {bench->self, "--child", NULL};
    const char *environment[] = {variant == PLAIN ? "TAILLIGHT_PLAIN=1" : bench->preload,
                                 variant >= ARMED ? bench->environment : NULL, NULL};
    struct process_place place = {.environment = environment};
    int result = process_run(argv, &place, 60000, out, sizeof out, err);
    if (result < 0)
        return result;
    char *rest = out;
    for (int kind = 0; kind < KINDS; kind++)
        bench->times[variant][kind][round] = strtod(rest, &rest);
    return 0;
}

static int variant_run(struct bench *bench, int variant, int round, struct error *err)
{
    if (variant < ARMED)
        return child_run(bench, variant, round, err);
    int result = message_collector_create(bench->dir, 0, NULL, 0, &bench->collector, err);
    if (result < 0)
        return result;
    if (variant == RECORDING)
        message_collector_enable(bench->collector);
    bench->stop = false;
    pthread_t thread;
    pthread_create(&thread, NULL, poll_run, bench);
    result = child_run(bench, variant, round, err);
    bench->stop = true;
    pthread_join(thread, NULL);
    struct message_stats stats = {0};
    if (result == 0)
        result = message_collector_finish(bench->collector, bench->out, &stats, err);
    bench->calls += stats.calls;
    bench->dropped += stats.dropped;
    if (result == 0 && (stats.calls > 0) != (variant == RECORDING))
        result = error_set(err, ERROR_FAILED, "%s: %llu calls recorded", variant_names[variant],
                           (unsigned long long)stats.calls);
    message_stats_free(&stats);
    message_collector_free(bench->collector);
    return result;
}

static json_t *metric(double *values, const char *unit)
{
    quantile_sort(values, ROUNDS);
    return json_pack("{s:f, s:s, s:i, s:f, s:f}", "value", quantile_sorted(values, ROUNDS, 0.5),
                     "unit", unit, "runs", ROUNDS, "min", values[0], "max", values[ROUNDS - 1]);
}

static void report(struct bench *bench, json_t *metrics)
{
    printf("%-16s %10s %24s %24s %24s\n", "ns per call", "plain", "inert adds", "armed adds",
           "recording adds");
    for (int kind = 0; kind < KINDS; kind++) {
        char name[64];
        printf("%-16s", kind_names[kind]);
        double added[VARIANTS][ROUNDS];
        for (int variant = INERT; variant < VARIANTS; variant++)
            for (int round = 0; round < ROUNDS; round++)
                added[variant][round] =
                    bench->times[variant][kind][round] - bench->times[PLAIN][kind][round];
        snprintf(name, sizeof name, "%s_plain", kind_names[kind]);
        json_t *plain = metric(bench->times[PLAIN][kind], "ns");
        printf(" %10.1f", json_real_value(json_object_get(plain, "value")));
        json_object_set_new(metrics, name, plain);
        for (int variant = INERT; variant < VARIANTS; variant++) {
            snprintf(name, sizeof name, "%s_%s_added", kind_names[kind], variant_names[variant]);
            json_t *one = metric(added[variant], "ns");
            printf("  %6.1f [%6.1f, %6.1f]", json_real_value(json_object_get(one, "value")),
                   added[variant][0], added[variant][ROUNDS - 1]);
            json_object_set_new(metrics, name, one);
        }
        printf("\n");
    }
    printf("%llu calls recorded, %llu dropped; %d rounds, median [lowest, highest]\n",
           (unsigned long long)bench->calls, (unsigned long long)bench->dropped, ROUNDS);
    json_object_set_new(metrics, "dropped",
                        json_pack("{s:f, s:s, s:i, s:f, s:f}", "value", (double)bench->dropped,
                                  "unit", "calls", "runs", ROUNDS, "min", (double)bench->dropped,
                                  "max", (double)bench->dropped));
}

static int bench_init(struct bench *bench, struct error *err)
{
    const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
    char absolute[PATH_MAX], path[PATH_MAX + 16];
    ssize_t length = readlink("/proc/self/exe", bench->self, sizeof bench->self - 1);
    if (length < 0 || !realpath(build, absolute))
        return error_set_errno(err, ERROR_INPUT, "no build directory %s: set BUILD", build);
    snprintf(bench->preload, sizeof bench->preload, "LD_PRELOAD=%.4000s/libtaillight-shim.so",
             absolute);
    snprintf(path, sizeof path, "%s/bench", absolute);
    mkdir(path, 0777);
    snprintf(bench->json, sizeof bench->json, "%.4000s/bench/shim.json", absolute);
    snprintf(bench->dir, sizeof bench->dir, "/dev/shm/shim-bench-%d", (int)getpid());
    snprintf(bench->out, sizeof bench->out, "/tmp/shim-bench-XXXXXX");
    snprintf(bench->environment, sizeof bench->environment, "TAILLIGHT_SHIM_DIR=%s", bench->dir);
    if (!mkdtemp(bench->out))
        return error_set_errno(err, ERROR_FAILED, "cannot make %s", bench->out);
    return 0;
}

static void bench_clear(const struct bench *bench)
{
    char path[128];
    snprintf(path, sizeof path, "%s/calls.tlog", bench->out);
    unlink(path);
    snprintf(path, sizeof path, "%s/connections.tlog", bench->out);
    unlink(path);
    rmdir(bench->out);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--child") == 0)
        return child();
    struct error err = {0};
    struct bench *bench = calloc(1, sizeof *bench);
    if (!bench)
        return 1;
    int result = bench_init(bench, &err);
    for (int round = 0; result == 0 && round < ROUNDS; round++)
        for (int i = 0; result == 0 && i < VARIANTS; i++)
            result = variant_run(bench, (round + i) % VARIANTS, round, &err);
    bench_clear(bench);
    if (result == 0) {
        json_t *metrics = json_object();
        report(bench, metrics);
        json_t *document = json_pack("{s:s, s:o}", "name", "shim", "metrics", metrics);
        if (json_dump_file(document, bench->json, JSON_INDENT(2)) < 0)
            result = error_set_errno(&err, ERROR_FAILED, "cannot write %s", bench->json);
        json_decref(document);
    }
    free(bench);
    return result < 0 ? error_report(&err) : 0;
}
