// SPDX-License-Identifier: MIT
//
// A server of several processes, each with threads that come and go and children that are forked
// for a connection, and clients that open thousands of connections as fast as they can: every byte
// comes back, the server lives, and what the shim counted of each connection is what its client
// moved, or said to be lost. The server is this program, run again.
#include "tests/shim/shim_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/process.h"

enum {
    PROCESSES = 4,
    THREADS = 6,  // of each
    CLIENTS = 8,  // each talks to an address of its own: 127.0.0.1 and up
    MOST = 20000, // connections of a client
    STRESS_SECONDS = 25,
    PATIENCE_MS = 60000,
};

static unsigned pick(uint64_t *random, unsigned below)
{
    *random += 0x9e3779b97f4a7c15ULL;
    return (unsigned)(hash64(*random) >> 32) % below;
}

// --- the server ----------------------------------------------------------------------------------

static bool give_back(uint64_t *random, int fd, char *bytes, size_t count)
{
    for (size_t at = 0; at < count;) {
        size_t left = count - at, half = left / 2;
        struct iovec parts[2] = {{bytes + at, half}, {bytes + at + half, left - half}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t sent;
        switch (pick(random, 4)) {
        case 0:
            sent = write(fd, bytes + at, left);
            break;
        case 1:
            sent = send(fd, bytes + at, left, MSG_NOSIGNAL);
            break;
        case 2:
            sent = writev(fd, parts, 2);
            break;
        default:
            sent = sendmsg(fd, &message, 0);
        }
        if (sent <= 0)
            return false;
        at += (size_t)sent;
    }
    return true;
}

static void echo(uint64_t *random, int fd)
{
    char bytes[4096];
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    for (;;) {
        size_t most = 1 + pick(random, sizeof bytes);
        struct pollfd one = {.fd = fd, .events = POLLIN};
        if (pick(random, 3) == 0)
            poll(&one, 1, PATIENCE_MS);
        ssize_t got = pick(random, 2) ? read(fd, bytes, most) : recv(fd, bytes, most, 0);
        if (got <= 0 || !give_back(random, fd, bytes, (size_t)got))
            break;
    }
    close(fd);
}

struct visit {
    uint64_t random;
    int fd;
};

static void *visit_echo(void *argument)
{
    struct visit visit = *(struct visit *)argument;
    free(argument);
    echo(&visit.random, visit.fd);
    return NULL;
}

// By this thread, by one of its own, or by a child.
static void serve_one(uint64_t *random, int fd)
{
    unsigned how = pick(random, 20);
    pthread_t thread;
    if (how == 0) {
        pid_t child = fork();
        if (child == 0) {
            echo(random, fd);
            _exit(0);
        }
        close(fd);
    } else if (how < 6) {
        struct visit *visit = malloc(sizeof *visit);
        if (!visit)
            exit(90);
        *visit = (struct visit){hash64(*random), fd};
        if (pthread_create(&thread, NULL, visit_echo, visit) != 0)
            exit(91);
        pthread_detach(thread);
    } else {
        if (how == 6) { // under another number
            int copy = dup(fd);
            close(fd);
            fd = copy;
        }
        echo(random, fd);
    }
}

struct accepting {
    int listening;
    uint64_t random;
};

static void *accept_for_ever(void *argument)
{
    struct accepting *accepting = argument;
    for (;;) {
        int fd = accept(accepting->listening, NULL, NULL);
        if (fd >= 0)
            serve_one(&accepting->random, fd);
        else if (errno != EINTR && errno != ECONNABORTED)
            exit(92);
    }
}

static int serve(uint64_t seed)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&address, bytes) < 0 || listen(listening, 1024) < 0 ||
        getsockname(listening, (struct sockaddr *)&address, &bytes) < 0)
        return 93;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    for (int i = 1; i < PROCESSES; i++)
        if (fork() == 0) {
            seed += (uint64_t)i << 32;
            goto process;
        }
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
process:;
    struct accepting *accepting = calloc(THREADS, sizeof *accepting);
    pthread_t threads[THREADS];
    for (int i = 0; accepting && i < THREADS; i++) {
        accepting[i] = (struct accepting){listening, seed + (uint64_t)i};
        if (pthread_create(&threads[i], NULL, accept_for_ever, &accepting[i]) != 0)
            return 94;
    }
    pause();
    return 95;
}

// --- the clients ---------------------------------------------------------------------------------

struct client {
    uint64_t random;
    uint16_t port; // the server's
    int number;
    int64_t end_ns;
    uint32_t count;
    struct {
        uint16_t port;
        uint64_t bytes;
    } done[MOST];
    const char *failure;
};

static bool talk(struct client *client, int fd, uint64_t *bytes)
{
    char out[3000], in[3000];
    for (unsigned rounds = pick(&client->random, 12); rounds; rounds--) {
        size_t count = 1 + pick(&client->random, sizeof out), got = 0;
        for (size_t i = 0; i < count; i++)
            out[i] = (char)(client->random + i * 7);
        if (send(fd, out, count, MSG_NOSIGNAL) != (ssize_t)count)
            return false;
        while (got < count) {
            ssize_t more = recv(fd, in + got, count - got, 0);
            if (more <= 0)
                return false;
            got += (size_t)more;
        }
        if (memcmp(in, out, count) != 0)
            return false;
        *bytes += count;
    }
    return true;
}

static void *client_run(void *argument)
{
    struct client *client = argument;
    while (client->count < MOST && monotonic_ns() < client->end_ns && !client->failure) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(client->port)}, from;
        socklen_t bytes = sizeof from;
        uint64_t moved = 0;
        char byte;
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)client->number);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        const int yes = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 ||
            getsockname(fd, (struct sockaddr *)&from, &bytes) < 0)
            client->failure = "it takes no connection";
        else if (!talk(client, fd, &moved) || shutdown(fd, SHUT_WR) < 0 ||
                 recv(fd, &byte, 1, 0) != 0)
            client->failure = "its bytes are not those that it was sent";
        client->done[client->count].port = ntohs(from.sin_port);
        client->done[client->count++].bytes = moved;
        close(fd);
    }
    return NULL;
}

// --- the test ------------------------------------------------------------------------------------

struct counted {
    uint64_t moved[2];
    bool is_there;
};

// What the log has of each connection, by the address that the client talks to and its port; a
// child's part is its own entry of the same connection. A port that was used again is several
// connections.
static struct counted *log_count(const struct logs *logs)
{
    struct counted *all = calloc((size_t)CLIENTS << 16, sizeof *all);
    const struct connection *connections = logs->connections.records;
    const struct call *calls = logs->calls.records;
    uint32_t *places = calloc(logs->connections.count + 1, sizeof *places);
    assert_true(all && places);
    for (size_t i = 0; i < logs->connections.count; i++) {
        uint32_t number = connections[i].local[15] - 1u;
        assert_true(number < CLIENTS && connections[i].id <= logs->connections.count);
        places[connections[i].id] = number << 16 | connections[i].peer_port;
        all[places[connections[i].id]].is_there = true;
    }
    for (size_t i = 0; i < logs->calls.count; i++)
        if (calls[i].kind == CALL_RECEIVE || calls[i].kind == CALL_SEND)
            all[places[calls[i].connection]].moved[calls[i].kind == CALL_SEND] += calls[i].length;
    free(places);
    return all;
}

static void clients_judge(const struct client *clients, const struct places *places,
                          const struct message_stats *stats)
{
    struct logs logs;
    uint64_t connections = 0, wrong = 0;
    logs_open(&logs, places);
    struct counted *counted = log_count(&logs);
    uint64_t *moved = calloc((size_t)CLIENTS << 16, sizeof *moved);
    assert_non_null(moved);
    for (int i = 0; i < CLIENTS; i++) {
        connections += clients[i].count;
        for (uint32_t k = 0; k < clients[i].count; k++)
            moved[i << 16 | clients[i].done[k].port] += clients[i].done[k].bytes;
    }
    for (uint32_t at = 0; at < (uint32_t)CLIENTS << 16; at++) {
        if (counted[at].moved[0] == moved[at] && counted[at].moved[1] == moved[at])
            continue;
        if (++wrong <= 10)
            print_message("client %u, port %u: %llu bytes each way; %llu in, %llu out counted%s\n",
                          at >> 16, at & 0xffff, (unsigned long long)moved[at],
                          (unsigned long long)counted[at].moved[0],
                          (unsigned long long)counted[at].moved[1],
                          counted[at].is_there ? "" : ", no such connection");
    }
    free(moved);
    uint64_t lost = stats->doubtful_connections + stats->incomplete_connections +
                    stats->unseen_connections + stats->dropped;
    print_message("%llu connections, %zu calls, %zu processes; counts of %llu connections differ, "
                  "%llu calls or connections said to be lost: %s\n",
                  (unsigned long long)connections, logs.calls.count, stats->process_count,
                  (unsigned long long)wrong, (unsigned long long)lost, stats->warning);
    assert_true(connections > 200);
    assert_true(wrong <= lost);
    assert_int_equal(stats->rejected, 0); // no record is lost by our own doing
    free(counted);
    logs_close(&logs);
}

static void a_busy_server_is_served_whole(void **state)
{
    (void)state;
    static struct client clients[CLIENTS];
    struct places places;
    struct error err;
    struct message_collector *collector = NULL;
    struct message_stats stats;
    struct process server;
    pthread_t threads[CLIENTS + 1];
    char self[PATH_MAX] = "", line[32], number[24];
    uint64_t seed = (uint64_t)clock_now_ns(CLOCK_REALTIME);
    places_init(&places, "stress");
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
    print_message("seed %s\n", number);
    if (message_collector_create(places.rings, 0, NULL, 0, &collector, &err) < 0)
        fail_msg("%s", err.text);
    message_collector_enable(collector);
    const char *argv[] = {self, "--serve", number, NULL};
    const char *environment[] = {places.preload, places.environment,
                                 "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0", NULL};
    struct process_place place = {
        .environment = environment, .pipe_output = true, .has_children = true};
    if (process_start(&server, argv, &place, &err) < 0 ||
        process_read_line(&server, line, sizeof line, PATIENCE_MS, &err) != 1)
        fail_msg("%s", err.text);
    struct poller poller = {.collector = collector};
    pthread_create(&threads[CLIENTS], NULL, poller_run, &poller);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.random = seed ^ (uint64_t)(i + 1) << 40,
                                     .port = (uint16_t)atoi(line),
                                     .number = i,
                                     .end_ns = monotonic_ns() + STRESS_SECONDS * 1000000000LL};
        pthread_create(&threads[i], NULL, client_run, &clients[i]);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL); // the last closes
    poller.stop = true;
    pthread_join(threads[CLIENTS], NULL);
    assert_false(poller.failed);
    if (message_collector_finish(collector, places.out, &stats, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kill(server.pid, 0), 0);
    process_close_pipes(&server);
    process_stop(&server, 100);
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].failure)
            fail_msg("%s: %s (%s)", number, clients[i].failure, strerror(errno));
    clients_judge(clients, &places, &stats);
    message_stats_free(&stats);
    message_collector_free(collector);
    places_clear(&places);
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return serve(strtoull(argv[2], NULL, 10));
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_busy_server_is_served_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
