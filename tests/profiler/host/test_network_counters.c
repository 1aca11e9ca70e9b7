// SPDX-License-Identifier: MIT
//
// The kernel's counters of what went wrong in its network.
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "profiler/host/network_counters.h"

static void counter_is_found_by_group_and_name(void **state)
{
    (void)state;
    static const char text[] = "TcpExt: SyncookiesSent ListenOverflows Last\nTcpExt: 1 22 333\n"
                               "IpExt: ListenOverflows InOctets\nIpExt: 4 5\n";
    assert_int_equal(network_counter_in(text, "TcpExt", "ListenOverflows"), 22);
    assert_int_equal(network_counter_in(text, "TcpExt", "Last"), 333);
    assert_int_equal(network_counter_in(text, "IpExt", "InOctets"), 5);
    assert_int_equal(network_counter_in(text, "IpExt", "Last"), 0);
    assert_int_equal(network_counter_in(text, "TcpExt", "Listen"), 0);
    assert_int_equal(network_counter_in(text, "Tcp", "Last"), 0);
    assert_int_equal(network_counter_in("TcpExt: A B\n", "TcpExt", "B"), 0);
    assert_int_equal(network_counter_in("TcpExt: A B\nTcpExt: 1", "TcpExt", "B"), 0);
    assert_int_equal(network_counter_in("", "TcpExt", "B"), 0);
}

// A listener that accepts nobody and has room for one: the others' connections find it full.
static void full_accept_queue_is_counted(void **state)
{
    (void)state;
    enum { CLIENTS = 8 };
    struct network_counters before;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), clients[CLIENTS];
    network_counters_read(&before);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(clients[i], (struct sockaddr *)&address, bytes);
    }
    json_t *moved = network_counters_moved(&before);
    assert_true(json_integer_value(json_object_get(moved, "ListenOverflows")) > 0);
    json_decref(moved);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counter_is_found_by_group_and_name),
        cmocka_unit_test(full_accept_queue_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
