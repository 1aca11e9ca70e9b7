// SPDX-License-Identifier: MIT
//
// An application must not notice that the shim is there. Each test_semantics_*.c is a program that
// makes a long sequence of socket calls of one kind, ordinary and perverse, and prints what each
// returned, what errno was afterwards and what data came; then the same with the shim loaded and
// recording, with the shim loaded and no collector, and with an unusable directory. All outputs
// must be equal, and the recording must account for every byte that the sequence says it moved.
// Here is what they share: the calls' surroundings, and the test.
#ifndef TESTS_SHIM_SEMANTICS_H
#define TESTS_SHIM_SEMANTICS_H

#include "tests/shim/shim_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "base/process.h"

enum {
    ERRNO_BEFORE = 4242,
    PATIENCE_MS = 20000, // for what comes soon on an idle machine, and later on a busy one
};

// Runs one call and says all that the application can see of it.
#define SEE(call)                                                                                  \
    ({                                                                                             \
        errno = ERRNO_BEFORE;                                                                      \
        long result_ = (long)(call);                                                               \
        int after_ = errno;                                                                        \
        printf("%s = %ld errno %d\n", #call, result_, after_);                                     \
        result_;                                                                                   \
    })

struct pair {
    int client, server;
};

static inline int listener(int family, struct sockaddr_storage *address, socklen_t *bytes)
{
    memset(address, 0, sizeof *address);
    address->ss_family = (sa_family_t)family;
    *bytes = sizeof(struct sockaddr_in6);
    if (family == AF_INET) {
        ((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        *bytes = sizeof(struct sockaddr_in);
    } else {
        ((struct sockaddr_in6 *)address)->sin6_addr = in6addr_loopback;
    }
    for (int tries = 0; tries < 100; tries++) { // another thread's connect may take the same port
        int fd = socket(family, SOCK_STREAM, 0), one = 1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one); // many ports rest in TIME_WAIT
        if (bind(fd, (struct sockaddr *)address, *bytes) == 0 && listen(fd, 64) == 0 &&
            getsockname(fd, (struct sockaddr *)address, bytes) == 0)
            return fd;
        perror("a port to listen on");
        close(fd);
    }
    exit(90);
}

static inline struct pair connected(void)
{
    struct sockaddr_storage address;
    socklen_t bytes;
    int listening = listener(AF_INET, &address, &bytes);
    struct pair pair = {.client = socket(AF_INET, SOCK_STREAM, 0)};
    if (connect(pair.client, (struct sockaddr *)&address, bytes) < 0)
        exit(91);
    pair.server = accept(listening, NULL, NULL);
    if (pair.server < 0)
        exit(92);
    int yes = 1;
    setsockopt(pair.client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(pair.server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    close(listening);
    return pair;
}

// Notes for the test how many bytes the server side of this connection took and gave.
static inline void account(const struct pair *pair, unsigned in, unsigned out)
{
    struct sockaddr_in address, peer; // the port lies in the same place for IPv6
    struct sockaddr_storage whole;
    socklen_t bytes = sizeof whole;
    getsockname(pair->client, (struct sockaddr *)&whole, &bytes);
    memcpy(&address, &whole, sizeof address);
    bytes = sizeof whole;
    getpeername(pair->client, (struct sockaddr *)&whole, &bytes);
    memcpy(&peer, &whole, sizeof peer);
    const char *path = getenv("SEQUENCE_TOTALS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%u %u %u %u\n", ntohs(address.sin_port), ntohs(peer.sin_port), in, out);
    fclose(file);
}

static inline void pair_close(struct pair *pair)
{
    SEE(close(pair->server));
    SEE(close(pair->client));
}

// Until so many bytes, or the end, or such an event, have arrived: even loopback takes its time.
static inline void arrive(int fd, int bytes)
{
    for (int there = 0; there < bytes; sched_yield())
        ioctl(fd, FIONREAD, &there);
}

static inline void happen(int fd, short event)
{
    struct pollfd one = {.fd = fd, .events = event};
    poll(&one, 1, PATIENCE_MS);
}

static inline void give(int fd, const char *text)
{
    if (send(fd, text, strlen(text), 0) != (ssize_t)strlen(text))
        exit(93);
}

static inline void see_text(const char *text, size_t length)
{
    printf("  '%.*s'\n", (int)length, text);
}

// --- the test: the sequence in four surroundings --------------------------------------------

// A sequence of calls, and what a recording of it has besides their bytes.
struct semantics {
    void (*sequence)(void);
    size_t connections; // that the sequence accounts for
    size_t stamped;     // calls, at least, that the kernel stamped for the application
    uint64_t late;      // calls, at least, that returned after another thread closed the descriptor
    uint64_t unseen;    // connections that are closed behind the shim's back
    uint64_t dropped;   // calls, at least, that find no room in rings of 64 entries
    uint64_t doubtful;  // connections that are used in ways that the shim cannot follow
};

static inline char *sequence_output(const char *const *environment)
{
    enum { ROOM = 1 << 18 };
    char *out = malloc(ROOM);
    assert_non_null(out);
    struct error err = {0};
    const char *argv[] = {"/proc/self/exe", "--sequence", NULL};
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    argv[0] = self;
    struct process_place place = {.environment = environment};
    if (process_run(argv, &place, 60000, out, ROOM, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(strlen(out) < ROOM - 1);
    assert_non_null(strstr(out, "\nend\n"));
    return out;
}

static inline void outputs_equal(char *expected, char *actual)
{
    char *rest_expected = expected, *rest_actual = actual;
    for (;;) {
        char *a = strsep(&rest_expected, "\n"), *b = strsep(&rest_actual, "\n");
        if (!a || !b) {
            assert_true(!a && !b);
            return;
        }
        assert_string_equal(a, b);
    }
}

#define SEMANTICS_ASAN "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0"

static inline void compare_with(const char *const *environment)
{
    char *plain = sequence_output((const char *const[]){SEMANTICS_ASAN, NULL});
    char *shimmed = sequence_output(environment);
    outputs_equal(plain, shimmed);
    free(plain);
    free(shimmed);
}

// Each connection that the sequence accounted for is in the log with just these bytes.
static inline void totals_check(const struct places *places, const char *path,
                                const struct semantics *expected)
{
    struct logs logs;
    logs_open(&logs, places);
    logs_check(&logs);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    unsigned port, local, in, out;
    size_t checked = 0;
    while (fscanf(file, "%u %u %u %u", &port, &local, &in, &out) == 4) {
        const struct connection *connections = logs.connections.records;
        const struct connection *found = NULL;
        for (size_t i = 0; i < logs.connections.count; i++) // the parent's entry, not the child's
            if (connections[i].peer_port == port && connections[i].local_port == local &&
                logs_count(&logs, connections[i].id, CALL_ACCEPT) == 1)
                found = &connections[i];
        assert_non_null(found);
        assert_int_equal(logs_follow(&logs, found->id, CALL_RECEIVE, 0), in);
        assert_int_equal(logs_follow(&logs, found->id, CALL_SEND, 0), out);
        assert_int_equal(logs_count(&logs, found->id, CALL_CLOSE), 1);
        checked++;
    }
    fclose(file);
    assert_int_equal(checked, expected->connections);
    size_t stamped = 0;
    const struct call *calls = logs.calls.records;
    for (size_t i = 0; i < logs.calls.count; i++)
        stamped += calls[i].rx_ns != 0;
    assert_true(stamped >= expected->stamped);
    printf("%zu connections accounted for, %zu calls\n", checked, logs.calls.count);
    logs_close(&logs);
}

static inline void test_recording(void **state)
{
    const struct semantics *expected = *state;
    struct places places;
    places_init(&places, "semantics");
    char totals[160], totals_path[140];
    snprintf(totals_path, sizeof totals_path, "%s/totals", places.out);
    snprintf(totals, sizeof totals, "SEQUENCE_TOTALS=%s", totals_path);
    struct error err = {0};
    struct message_collector *collector = NULL;
    if (message_collector_create(places.rings, 0, NULL, 0, &collector, &err) < 0)
        fail_msg("%s", err.text);
    message_collector_watch_peers(collector);
    message_collector_watch_commands(collector);
    message_collector_enable(collector);
    struct poller poller = {.collector = collector};
    pthread_t thread;
    pthread_create(&thread, NULL, poller_run, &poller);
    compare_with(
        (const char *const[]){places.preload, places.environment, totals, SEMANTICS_ASAN, NULL});
    poller.stop = true;
    pthread_join(thread, NULL);
    assert_false(poller.failed);
    struct message_stats stats;
    if (message_collector_finish(collector, places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    // Signal handlers that fall into the writing of a record are lost, and counted.
    assert_int_equal(stats.dropped, stats.dropped_without_ring + stats.doubtful);
    assert_int_equal(stats.doubtful_connections, expected->doubtful);
    assert_int_equal(stats.rejected, 0);
    assert_true(stats.late >= expected->late);
    assert_int_equal(stats.unseen_connections, expected->unseen);
    totals_check(&places, totals_path, expected);
    message_stats_free(&stats);
    message_collector_free(collector);
    places_clear(&places);
}

static inline void test_armed_only(void **state)
{
    (void)state;
    struct places places;
    places_init(&places, "armed");
    struct error err = {0};
    struct message_collector *collector = NULL;
    if (message_collector_create(places.rings, 4096, NULL, 0, &collector, &err) < 0)
        fail_msg("%s", err.text);
    compare_with((const char *const[]){places.preload, places.environment, SEMANTICS_ASAN, NULL});
    struct message_stats stats;
    if (message_collector_finish(collector, places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(stats.calls, 0);
    assert_true(stats.process_count >= 1);
    message_stats_free(&stats);
    message_collector_free(collector);
    places_clear(&places);
}

// Memory for a few hundred calls that nobody empties: the others are dropped, nothing waits.
static inline void test_full_rings(void **state)
{
    const struct semantics *expected = *state;
    struct places places;
    places_init(&places, "full");
    struct error err = {0};
    struct message_collector *collector = NULL;
    if (message_collector_create(places.rings, 4096, NULL, 0, &collector, &err) < 0)
        fail_msg("%s", err.text);
    message_collector_enable(collector);
    compare_with((const char *const[]){places.preload, places.environment, SEMANTICS_ASAN, NULL});
    struct message_stats stats;
    if (message_collector_finish(collector, places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(stats.dropped_full >= expected->dropped);
    assert_int_equal(strstr(stats.warning, "memory for records was full") != NULL,
                     stats.dropped_full > 0);
    struct logs logs;
    logs_open(&logs, &places);
    logs_check(&logs);
    assert_int_equal(logs.calls.header.dropped, stats.dropped);
    logs_close(&logs);
    message_stats_free(&stats);
    message_collector_free(collector);
    places_clear(&places);
}

static inline void test_inert(void **state)
{
    (void)state;
    struct places places;
    places_init(&places, "inert");
    compare_with((const char *const[]){places.preload, SEMANTICS_ASAN, NULL});
    compare_with((const char *const[]){places.preload, places.environment, SEMANTICS_ASAN, NULL});
    compare_with((const char *const[]){places.preload, "TAILLIGHT_SHIM_DIR=/dev/null",
                                       SEMANTICS_ASAN, NULL});
    compare_with(
        (const char *const[]){places.preload, "TAILLIGHT_SHIM_DIR=/proc", SEMANTICS_ASAN, NULL});
    places_clear(&places);
}

// The program's main(): its own tests, or, with --sequence, the sequence.
static inline int semantics_main(int argc, char **argv, const struct semantics *semantics)
{
    if (argc > 1 && strcmp(argv[1], "--sequence") == 0) {
        setvbuf(stdout, NULL, _IOFBF, 1 << 16);
        semantics->sequence();
        printf("end\n");
        fflush(stdout);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_recording, (void *)(uintptr_t)semantics),
        cmocka_unit_test(test_armed_only),
        cmocka_unit_test_prestate(test_full_rings, (void *)(uintptr_t)semantics),
        cmocka_unit_test(test_inert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
