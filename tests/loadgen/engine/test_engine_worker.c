// SPDX-License-Identifier: MIT
//
// One thread of the engine, turned by hand, with this test as its server: what it does first when
// requests are due while replies wait, and what becomes of a reply that waits when a send fails.
#include <event2/event.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/tsc.h"
#include "loadgen/engine/engine_worker.h"
#include "tests/loadgen/engine/engine_test.h"
#include "workloads/protocols.h"

enum { MOST_CONNECTIONS = 2 };

struct lab {
    struct workload workload;
    struct server_address address;
    struct engine_settings settings;
    struct schedule schedule;
    struct engine_shared shared;
    struct engine_worker worker;
    int accepted[MOST_CONNECTIONS]; // the server's ends, in the order of the connections
};

// A worker that is connected, with that many requests of its schedule, which is due from the start.
static struct lab *new_lab(const char *protocol, uint32_t connections, size_t requests)
{
    struct lab *lab = calloc(1, sizeof *lab);
    struct error err = {0};
    uint16_t port;
    int listener = listen_anywhere(&port);
    resolve(port, &lab->address);
    workload_defaults(&lab->workload);
    lab->workload.protocol = protocol_find(protocol);
    lab->workload.mix[WORKLOAD_GET] = 1;
    lab->workload.mix[WORKLOAD_SET] = 0;
    lab->schedule.items = calloc(requests, sizeof *lab->schedule.items);
    lab->schedule.count = requests;
    lab->settings = (struct engine_settings){.server = &lab->address,
                                             .workload = &lab->workload,
                                             .connections = connections,
                                             .timeout_ns = 1000000000,
                                             .reconnect_ns = 1000000000};
    lab->shared = (struct engine_shared){.settings = &lab->settings,
                                         .schedule = &lab->schedule,
                                         .thread_count = 1,
                                         .depth = 8,
                                         .ticks_per_ns = 2,
                                         .request_bytes = 512,
                                         .value_bytes = workload_value_bytes_max(&lab->workload)};
    atomic_init(&lab->shared.last_id, connections);
    lab->worker.shared = &lab->shared;
    if (engine_worker_prepare(&lab->worker, &err) < 0)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < connections; i++)
        lab->accepted[i] = accept(listener, NULL, NULL);
    close(listener);
    return lab;
}

static void free_lab(struct lab *lab, uint32_t connections)
{
    for (uint32_t i = 0; i < connections; i++)
        close(lab->accepted[i]);
    engine_worker_close(&lab->worker);
    munmap(lab->worker.samples, lab->worker.sample_bytes);
    array_free(&lab->worker.context.log);
    free(lab->schedule.items);
    workload_free(&lab->workload);
    free(lab);
}

// The worker's next request, out on that connection and with the server.
static void send_one(struct lab *lab, uint32_t connection)
{
    struct engine_worker *worker = &lab->worker;
    struct request request;
    char bytes[1000];
    workload_request(&lab->workload, WORKLOAD_GET, 0, worker->next, 0, worker->key, worker->value,
                     &request);
    connection_put(&worker->connections[connection], (uint32_t)worker->next++, &request);
    connection_flush(&worker->connections[connection]);
    assert_true(read(lab->accepted[connection], bytes, sizeof bytes) > 0);
}

// Until the client's kernel has it: over loopback at once, but where a busy machine leaves the
// delivery to a thread.
static void reply(struct lab *lab, uint32_t connection, const char *text)
{
    struct pollfd arrived = {.fd = lab->worker.connections[connection].socket_fd, .events = POLLIN};
    assert_int_equal(write(lab->accepted[connection], text, strlen(text)), strlen(text));
    assert_int_equal(poll(&arrived, 1, 10000), 1);
}

static bool is_sent(const struct lab *lab, size_t sample)
{
    return lab->worker.samples[sample].sent_tsc != 0;
}

static void what_is_due_is_sent_before_replies_are_read(void **state)
{
    (void)state;
    struct lab *lab = new_lab("memcached", 2, 4);
    const struct sample *samples = lab->worker.samples;
    for (uint32_t i = 0; i < 2; i++) {
        send_one(lab, i);
        reply(lab, i, "END\r\n");
    }
    engine_worker_turn(&lab->worker, tsc_now());
    for (size_t sent = 2; sent < 4; sent++) {
        assert_true(is_sent(lab, sent));
        for (size_t read = 0; read < 2; read++) {
            assert_int_equal(samples[read].status, SAMPLE_MISS);
            assert_true(samples[sent].sent_tsc <= samples[read].reply_tsc);
        }
    }
    free_lab(lab, 2);
}

// It becomes due while replies are read: it waits for one of them.
static void what_becomes_due_waits_for_one_reply(void **state)
{
    (void)state;
    struct lab *lab = new_lab("memcached", 2, 3);
    const struct sample *samples = lab->worker.samples;
    for (uint32_t i = 0; i < 2; i++) {
        send_one(lab, i);
        reply(lab, i, "END\r\n");
    }
    event_base_loop(lab->worker.base, EVLOOP_NONBLOCK);
    const bool first = samples[0].reply_tsc < samples[1].reply_tsc;
    const uint64_t reads[] = {samples[!first].reply_tsc, samples[first].reply_tsc};
    assert_true(is_sent(lab, 2));
    assert_true(reads[0] <= samples[2].send_tsc && samples[2].sent_tsc <= reads[1]);
    free_lab(lab, 2);
}

// The server is gone, by a reset that the next send call meets.
static void reset_before_a_send(struct lab *lab)
{
    struct engine_worker *worker = &lab->worker;
    struct request request;
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(lab->accepted[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(lab->accepted[0]);
    workload_request(&lab->workload, WORKLOAD_GET, 0, worker->next, 0, worker->key, worker->value,
                     &request);
    connection_put(&worker->connections[0], (uint32_t)worker->next++, &request);
    connection_flush(&worker->connections[0]);
    assert_int_equal(worker->counts.ended, 1);
    assert_int_equal(worker->counts.in_flight, 0);
    assert_int_equal(worker->counts.moved, 1); // what was not sent goes to another connection
    assert_int_equal(worker->again_count, 1);
}

// It answered, and said that it closes: then the end is an orderly one, with nothing lost.
static void a_reply_counts_though_the_next_send_fails(void **state)
{
    (void)state;
    struct lab *lab = new_lab("http", 1, 2);
    send_one(lab, 0);
    reply(lab, 0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    reset_before_a_send(lab);
    assert_int_equal(lab->worker.samples[0].status, SAMPLE_ANSWERED);
    assert_int_equal(lab->worker.counts.broken, 0);
    for (unsigned reason = 0; reason < LOSS_REASONS; reason++)
        assert_int_equal(lab->worker.counts.lost[reason], 0);
    free_lab(lab, 0);
}

// It said nothing of an end, whether or not it answered one of two: the others are lost by the
// reset.
static void a_reset_that_a_send_meets_is_one(void **state)
{
    (void)state;
    for (unsigned answers = 0; answers < 2; answers++) {
        struct lab *lab = new_lab("memcached", 1, 3);
        send_one(lab, 0);
        send_one(lab, 0);
        if (answers)
            reply(lab, 0, "END\r\n");
        reset_before_a_send(lab);
        assert_int_equal(lab->worker.samples[0].status, answers ? SAMPLE_MISS : SAMPLE_LOST);
        assert_int_equal(lab->worker.samples[1].status, SAMPLE_LOST);
        assert_int_equal(lab->worker.counts.broken, 1);
        assert_int_equal(lab->worker.counts.lost[LOSS_RESET], 2 - answers);
        free_lab(lab, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_due_is_sent_before_replies_are_read),
        cmocka_unit_test(what_becomes_due_waits_for_one_reply),
        cmocka_unit_test(a_reply_counts_though_the_next_send_fails),
        cmocka_unit_test(a_reset_that_a_send_meets_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
