// SPDX-License-Identifier: MIT
//
// A deep closed loop against a server that answers at its own pace. One request after the other:
// its replies are read several at a time, by a load that spins and by one that sleeps. All that
// have come at once: meanwhile a load that spins leaves its core to others, too.
#include "tests/loadgen/engine/engine_test.h"

#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { DEPTH = 64, PACE_NS = 20000, LEAST = 1000 };

struct paced_server {
    int listener;
    atomic_bool stop;
    bool at_once; // answers all that it has
    uint64_t answered;
    pthread_t thread;
};

static uint64_t receives; // that brought something

// The load's, in place of the C library's; the server has another.
ssize_t recv(int descriptor, void *bytes, size_t room, int flags)
{
    const ssize_t got = syscall(SYS_recvfrom, descriptor, bytes, room, flags, NULL, NULL);
    receives += got > 0;
    return got;
}

static void *serve(void *argument)
{
    struct paced_server *server = argument;
    uint64_t requests = 0;
    char bytes[16 << 10], replies[5 * DEPTH];
    for (int i = 0; i < DEPTH; i++)
        memcpy(replies + 5 * (size_t)i, "END\r\n", 5);
    int client = accept(server->listener, NULL, NULL);
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    while (!atomic_load(&server->stop)) {
        ssize_t got = syscall(SYS_recvfrom, client, bytes, sizeof bytes, MSG_DONTWAIT, NULL, NULL);
        for (ssize_t i = 0; i < got; i++)
            requests += bytes[i] == '\n';
        const uint64_t due = server->answered == requests ? 0
                             : server->at_once            ? requests - server->answered
                                                          : 1;
        const int64_t begin = monotonic_ns();
        while (monotonic_ns() - begin < (int64_t)(due ? due : 1) * PACE_NS)
            ;
        if (due && send(client, replies, 5 * due, MSG_NOSIGNAL) == (ssize_t)(5 * due))
            server->answered += due;
    }
    close(client);
    return NULL;
}

// Returns how long the load slept, in seconds.
static double load_paced(bool at_once, bool sleeps)
{
    struct paced_server server = {.at_once = at_once};
    struct engine_result result;
    struct workload workload;
    struct schedule order;
    struct server_address address;
    struct error err = {0};
    uint16_t port;
    receives = 0;
    server.listener = listen_anywhere(&port);
    gets_only(&workload);
    resolve(port, &address);
    assert_int_equal(schedule_draw_order(&workload, 1000, 1, &order, &err), 0);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, &server), 0);
    const struct engine_settings settings = {.server = &address,
                                             .workload = &workload,
                                             .connections = 1,
                                             .depth = DEPTH,
                                             .stamps = STAMP_MODE_USER,
                                             .closed_loop = true,
                                             .sleeps = sleeps,
                                             .requests_max = 10000000,
                                             .duration_ns = load_ns,
                                             .timeout_ns = patient_ms * 1000000};
    if (engine_run(&settings, &order, &result, &err) < 0)
        fail_msg("%s", err.text);
    atomic_store(&server.stop, true);
    pthread_join(server.thread, NULL);
    assert_int_equal(result.end, ENGINE_COMPLETE);
    assert_true(server.answered >= LEAST);
    if (3 * receives > 2 * server.answered)
        fail_msg("%lu replies in %lu reads", server.answered, receives);
    assert_true(result.asleep_tsc <= result.spin_tsc);
    const double asleep_s = (double)result.asleep_tsc / result.tsc_hz;
    engine_result_free(&result);
    schedule_free(&order);
    workload_free(&workload);
    close(server.listener);
    return asleep_s;
}

static void by_one_that_spins(void **state)
{
    (void)state;
    assert_true(load_paced(false, false) > 0);
}

static void by_one_that_sleeps(void **state)
{
    (void)state;
    assert_true(load_paced(false, true) > 0);
}

static void of_a_server_that_answers_all_at_once(void **state)
{
    (void)state;
    assert_true(load_paced(true, false) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_one_that_spins),
                                       cmocka_unit_test(by_one_that_sleeps),
                                       cmocka_unit_test(of_a_server_that_answers_all_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
