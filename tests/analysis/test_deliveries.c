// SPDX-License-Identifier: MIT
//
// Whose bytes a delivery brought, where only its time is known: told where the counts leave no
// choice, and not told elsewhere.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/deliveries.h"

enum { THREAD = 7, ROUND_NS = 100000 };

struct server {
    struct delivery_array deliveries;
    struct application_calls calls;
    uint32_t batch;
};

static void deliver(struct server *server, int64_t at)
{
    assert_int_equal(array_push(&server->deliveries, (struct delivery){.delivered_ns = at}), 0);
}

static void call(struct server *server, enum call_kind kind, int64_t entry, int64_t exit,
                 uint32_t length, unsigned position)
{
    struct application_call one = {.entry_ns = entry,
                                   .exit_ns = exit,
                                   .length = length,
                                   .thread = THREAD,
                                   .batch = server->batch,
                                   .batch_position = (uint16_t)position,
                                   .kind = (uint8_t)kind};
    assert_int_equal(array_push(&server->calls, one), 0);
}

// A wait that returns in the middle of the round, and a receive call for each that is ready.
static void serve(struct server *server, int round, unsigned ready, unsigned receives)
{
    int64_t wake = round * (int64_t)ROUND_NS + ROUND_NS / 2;
    server->batch++;
    call(server, CALL_WAIT, wake - ROUND_NS / 2 + 5000, wake, ready, 0);
    for (unsigned i = 0; i < receives; i++) {
        call(server, CALL_RECEIVE, wake + 1000 * (i + 1), wake + 1000 * (i + 1) + 300, 40, i);
        call(server, CALL_SEND, wake + 1000 * (i + 1) + 400, wake + 1000 * (i + 1) + 700, 40, 0);
    }
}

static int64_t in_round(int round, int64_t ns)
{
    return round * (int64_t)ROUND_NS + ns;
}

// Which receive calls, by number, got which delivery; -1 none.
static void expect(struct server *server, const int *wanted, size_t count)
{
    struct delivered_calls found;
    uint64_t unknown, not_wanted = 0;
    size_t next = 0, receive = 0;
    assert_int_equal(deliveries_match(&server->deliveries, &server->calls, &found, &unknown), 0);
    for (uint32_t i = 0; i < server->calls.count; i++) {
        if (server->calls.items[i].kind != CALL_RECEIVE)
            continue;
        assert_true(receive < count);
        int delivery = wanted[receive++];
        not_wanted += delivery < 0;
        if (delivery < 0)
            continue;
        assert_true(next < found.count);
        assert_int_equal(found.items[next].call, i);
        assert_int_equal(found.items[next++].delivery, delivery);
    }
    assert_int_equal(receive, count);
    assert_int_equal(next, found.count);
    assert_int_equal(unknown, not_wanted);
    array_free(&found);
    array_free(&server->deliveries);
    array_free(&server->calls);
}

#define EXPECT(server, ...)                                                                        \
    expect(server, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

// The first return settles what came before it.
static void begin(struct server *server)
{
    *server = (struct server){0};
    serve(server, 0, 0, 0);
}

static void ready_sockets_stand_in_the_order_of_deliveries(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    for (int i = 0; i < 3; i++)
        deliver(&server, in_round(1, 10000 + 5000 * i));
    serve(&server, 1, 3, 3);
    deliver(&server, in_round(1, 90000)); // while the thread works
    deliver(&server, in_round(2, 40000));
    serve(&server, 2, 2, 2);
    EXPECT(&server, 0, 1, 2, 3, 4);
}

static void two_deliveries_to_one_socket_are_not_told_apart(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    for (int i = 0; i < 3; i++)
        deliver(&server, in_round(1, 10000 + 5000 * i));
    serve(&server, 1, 2, 2);
    deliver(&server, in_round(2, 10000));
    serve(&server, 2, 1, 1);
    EXPECT(&server, -1, -1, 3);
}

static void more_receives_than_ready_sockets_are_not_told_apart(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    deliver(&server, in_round(1, 10000));
    serve(&server, 1, 1, 2);
    deliver(&server, in_round(2, 10000));
    deliver(&server, in_round(2, 20000));
    serve(&server, 2, 2, 1); // one of the two had nothing to read
    deliver(&server, in_round(3, 20000));
    serve(&server, 3, 1, 1);
    EXPECT(&server, -1, -1, -1, 3);
}

// Two in a row, each counted with the batch before its own, would shift all by one.
static void a_delivery_after_the_ready_were_collected_shifts_nothing(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    for (int round = 1; round < 4; round++) {
        deliver(&server, in_round(round, 20000));
        deliver(&server, in_round(round, ROUND_NS / 2 - 300)); // received in the next round
        serve(&server, round, round == 1 ? 1 : 2, round == 1 ? 1 : 2);
    }
    deliver(&server, in_round(4, 20000));
    serve(&server, 4, 2, 2);
    deliver(&server, in_round(5, 20000));
    serve(&server, 5, 1, 1);
    EXPECT(&server, -1, -1, -1, -1, -1, -1, -1, 7);
}

static void where_the_trace_has_a_hole_nothing_is_told(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    struct delivery hole = {
        .delivered_ns = in_round(1, 20000), .arrived_ns = in_round(2, 20000), .lost = true};
    assert_int_equal(array_push(&server.deliveries, hole), 0);
    serve(&server, 1, 1, 1);
    deliver(&server, in_round(2, 30000));
    serve(&server, 2, 1, 1);
    deliver(&server, in_round(3, 30000));
    serve(&server, 3, 1, 1);
    EXPECT(&server, -1, -1, 2);
}

static void threads_that_share_deliveries_are_not_told_apart(void **state)
{
    struct server server;
    (void)state;
    begin(&server);
    deliver(&server, in_round(1, 10000));
    serve(&server, 1, 1, 1);
    size_t others = server.calls.count;
    for (int round = 2; round < 4; round++) {
        deliver(&server, in_round(round, 10000));
        serve(&server, round, 1, 1);
    }
    for (size_t i = others; i < server.calls.count; i++)
        server.calls.items[i].thread++;
    EXPECT(&server, -1, -1, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ready_sockets_stand_in_the_order_of_deliveries),
        cmocka_unit_test(two_deliveries_to_one_socket_are_not_told_apart),
        cmocka_unit_test(more_receives_than_ready_sockets_are_not_told_apart),
        cmocka_unit_test(a_delivery_after_the_ready_were_collected_shifts_nothing),
        cmocka_unit_test(where_the_trace_has_a_hole_nothing_is_told),
        cmocka_unit_test(threads_that_share_deliveries_are_not_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
