// SPDX-License-Identifier: MIT
//
// Which connection is which where a port is used again and again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/calls/streams.h"

static void open_again(struct connection *client, struct connection *server, uint32_t id)
{
    *client = (struct connection){
        .id = id, .protocol = CONNECTION_TCP, .local_port = 5000, .peer_port = 80};
    *server = (struct connection){
        .id = id, .protocol = CONNECTION_TCP, .local_port = 80, .peer_port = 5000};
}

// A server that is late reads a connection long after it was opened: what it read of the one before
// is nearer.
static void a_late_server_reads_what_was_sent_before(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    struct connection client[COUNT], server[COUNT];
    const int64_t sent[COUNT] = {885540000, 898770000, 930000000, 960000000},
                  received[COUNT] = {885560000, 918160000, 929990000, 975000000};
    uint32_t other_end[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        open_again(&client[i], &server[COUNT - 1 - i], i);
    int64_t received_first[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        received_first[COUNT - 1 - i] = received[i];
    assert_int_equal(
        match_connections(client, COUNT, sent, server, COUNT, received_first, other_end), 0);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(other_end[i], COUNT - 1 - i);
}

// A connection whose bytes nobody read does not take those of the next one.
static void what_nobody_read_has_no_other_end(void **state)
{
    (void)state;
    struct connection client[3], server[3];
    const int64_t sent[3] = {1000000, 5000000, 9000000},
                  received[3] = {1200000, 9300000, INT64_MAX};
    uint32_t other_end[3];
    for (uint32_t i = 0; i < 3; i++)
        open_again(&client[i], &server[i], i);
    assert_int_equal(match_connections(client, 3, sent, server, 2, received, other_end), 0);
    assert_int_equal(other_end[0], 0);
    assert_int_equal(other_end[1], NO_CONNECTION);
    assert_int_equal(other_end[2], 1);
    // One that the server's application took and read nothing of is that of the latest.
    assert_int_equal(match_connections(client, 3, sent, server, 3, received, other_end), 0);
    assert_int_equal(other_end[1], NO_CONNECTION);
    assert_int_equal(other_end[2], 1);
}

// A load's log begins later than the connection, whose first bytes were read before.
static void one_of_an_end_is_its_other_end_whenever_it_was(void **state)
{
    (void)state;
    struct connection client, server;
    const int64_t sent = 5000000000, received = 1000;
    uint32_t other_end;
    open_again(&client, &server, 1);
    assert_int_equal(match_connections(&client, 1, &sent, &server, 1, &received, &other_end), 0);
    assert_int_equal(other_end, 0);
    server.peer_port++;
    assert_int_equal(match_connections(&client, 1, &sent, &server, 1, &received, &other_end), 0);
    assert_int_equal(other_end, NO_CONNECTION);
}

// Nor is one from before the load the other end of the load's.
static void one_from_before_the_load_is_not_the_loads(void **state)
{
    (void)state;
    struct connection client, server[3];
    const int64_t sent = 5000000, received[3] = {1000, 5040000, 2000};
    uint32_t other_end;
    for (uint32_t i = 0; i < 3; i++)
        open_again(&client, &server[i], i);
    assert_int_equal(match_connections(&client, 1, &sent, server, 3, received, &other_end), 0);
    assert_int_equal(other_end, 1);
}

// Two network namespaces have connections of the same ends at once: of a watch, both sides are the
// kernel's, and their times the same.
static void connections_of_the_same_ends_at_once_are_told_apart(void **state)
{
    (void)state;
    struct connection client[2], server[2];
    const int64_t first[2] = {5000000, 5050000};
    uint32_t other_end[2];
    for (uint32_t i = 0; i < 2; i++)
        open_again(&client[i], &server[i], i);
    assert_int_equal(match_connections(client, 2, first, server, 2, first, other_end), 0);
    assert_int_equal(other_end[0], 0);
    assert_int_equal(other_end[1], 1);
}

static void a_cookie_finds_its_socket(void **state)
{
    (void)state;
    const struct connection sockets[2] = {{.id = 7, .cookie = 7},
                                          {.id = 9, .cookie = 5ULL << 32 | 9}};
    struct connection_index index;
    assert_int_equal(connection_index_init(&index, sockets, 2), 0);
    assert_int_equal(connection_index_of_cookie(&index, 7), 0);
    assert_int_equal(connection_index_of_cookie(&index, 5ULL << 32 | 9), 1);
    assert_int_equal(connection_index_of_cookie(&index, 9), NO_CONNECTION);
    assert_int_equal(connection_index_of_cookie(&index, 0), NO_CONNECTION);
    connection_index_fini(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_server_reads_what_was_sent_before),
        cmocka_unit_test(what_nobody_read_has_no_other_end),
        cmocka_unit_test(one_of_an_end_is_its_other_end_whenever_it_was),
        cmocka_unit_test(one_from_before_the_load_is_not_the_loads),
        cmocka_unit_test(connections_of_the_same_ends_at_once_are_told_apart),
        cmocka_unit_test(a_cookie_finds_its_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
