// SPDX-License-Identifier: MIT
//
// The engine against a server that never stops sending, whether it was asked or not: the load ends
// when it should, and at once when it is told to, while the server still sends.
// Runs beside others: nothing is timed; the server gives up after more bytes than a load that ends
// can take.
#include "tests/loadgen/engine/engine_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum { CLIENTS = 4, PIECE_BYTES = 64 << 10, BEFORE_SIGNAL = 4 << 20 };
static const uint64_t gives_up_bytes = UINT64_C(8) << 30, hour_ns = 3600000000000;

struct stream_server {
    const char *unit; // what it sends again and again
    int listener;
    uint16_t port;
    bool sends_signal; // SIGTERM, once BEFORE_SIGNAL bytes are out and a request has come
    atomic_bool stop;
    bool gave_up;
    pthread_t thread;
};

// Then the load has all its connections and is at it.
static bool was_asked(const int *clients, unsigned count)
{
    char first;
    for (unsigned i = 0; i < count; i++)
        if (recv(clients[i], &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
            return true;
    return false;
}

static void *serve(void *argument)
{
    struct stream_server *server = argument;
    char *piece = malloc(PIECE_BYTES);
    int clients[CLIENTS];
    unsigned count = 0;
    uint64_t sent = 0;
    const size_t unit = strlen(server->unit), whole = PIECE_BYTES / unit * unit;
    size_t at[CLIENTS] = {0}; // in the piece
    for (size_t i = 0; i < whole; i++)
        piece[i] = server->unit[i % unit];
    while (!atomic_load(&server->stop) && !server->gave_up) {
        int client = count < CLIENTS ? accept4(server->listener, NULL, NULL, SOCK_NONBLOCK) : -1;
        if (client >= 0)
            clients[count++] = client;
        for (unsigned i = 0; i < count; i++) {
            ssize_t more = send(clients[i], piece + at[i], whole - at[i], MSG_NOSIGNAL);
            at[i] = more > 0 ? (at[i] + (size_t)more) % whole : at[i];
            sent += more > 0 ? (uint64_t)more : 0;
        }
        if (server->sends_signal && sent > BEFORE_SIGNAL && was_asked(clients, count)) {
            server->sends_signal = false;
            kill(getpid(), SIGTERM);
        }
        server->gave_up = sent > gives_up_bytes;
    }
    for (unsigned i = 0; i < count; i++)
        close(clients[i]);
    free(piece);
    return NULL;
}

// Loads it with gets for so long, unless it sends the signal before.
static void load(struct stream_server *server, const char *unit, uint64_t duration_ns, bool closed,
                 bool sleeps, struct engine_result *result)
{
    struct workload workload;
    struct schedule schedule;
    struct server_address address;
    struct error err = {0};
    server->unit = unit;
    server->listener = listen_anywhere(&server->port);
    assert_int_equal(fcntl(server->listener, F_SETFL, O_NONBLOCK), 0);
    atomic_init(&server->stop, false);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
    gets_only(&workload);
    resolve(server->port, &address);
    const struct distribution even = {.kind = DISTRIBUTION_FIXED, .first = 1};
    assert_int_equal(closed ? schedule_draw_order(&workload, 1000, 1, &schedule, &err)
                            : schedule_draw(&workload, &even, duration_ns < hour_ns ? 1000 : 10,
                                            duration_ns, 1, &schedule, &err),
                     0);
    const struct engine_settings settings = {.server = &address,
                                             .workload = &workload,
                                             .connections = CLIENTS,
                                             .depth = 2,
                                             .stamps = STAMP_MODE_USER,
                                             .closed_loop = closed,
                                             .sleeps = sleeps,
                                             .requests_max = closed ? 10000000 : 0,
                                             .duration_ns = duration_ns,
                                             .timeout_ns = 100000000,
                                             .reconnect_ns = 300000000};
    if (engine_run(&settings, &schedule, result, &err) < 0)
        fail_msg("%s", err.text);
    const bool gave_up = server->gave_up;
    atomic_store(&server->stop, true);
    pthread_join(server->thread, NULL);
    close(server->listener);
    schedule_free(&schedule);
    workload_free(&workload);
    assert_false(gave_up);
}

static const char *const units[] = {
    "END\r\n",                       // an answer to the next request, or to none
    "VALUE k 0 1073741824\r\n.....", // a value that does not end
};

static void the_load_ends_while_the_server_sends(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        struct stream_server server = {.sends_signal = false};
        struct engine_result result;
        load(&server, units[i % 2], 100000000, i / 2 == 1, i / 2 == 2, &result);
        assert_true(result.end == ENGINE_COMPLETE || result.end == ENGINE_TIMED_OUT ||
                    result.end == ENGINE_BROKEN);
        engine_result_free(&result);
    }
}

static void a_signal_ends_it_while_the_server_sends(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct stream_server server = {.sends_signal = true};
        struct engine_result result;
        load(&server, units[0], hour_ns, i == 1, false, &result);
        assert_int_equal(result.end, ENGINE_INTERRUPTED);
        engine_result_free(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_load_ends_while_the_server_sends),
        cmocka_unit_test(a_signal_ends_it_while_the_server_sends),
    };
    // The engine takes it from where it waits; the server's thread must not be what it ends.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
