// SPDX-License-Identifier: MIT
//
// Whoever listens here is found, and of those who do not it is said.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "profiler/host/listening_ports.h"

// A socket bound to a port of its own, which it may listen on.
static int bound_socket(int family, uint16_t *port)
{
    struct sockaddr_in6 address = {.sin6_family = (sa_family_t)family};
    socklen_t bytes = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof address;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    *port = ntohs(address.sin6_port); // at the same place for either family
    return fd;
}

static void listeners_are_found(void **state)
{
    (void)state;
    static const int families[] = {AF_INET, AF_INET6};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        uint16_t port;
        char list[16], words[200];
        struct port_set here;
        int fd = bound_socket(families[i], &port);
        snprintf(list, sizeof list, "%u", port);
        listening_ports_here(&here);
        assert_false(port_set_has(&here, port));
        assert_true(listening_ports_lack(list, words, sizeof words));
        assert_int_equal(listen(fd, 1), 0);
        listening_ports_here(&here);
        assert_true(port_set_has(&here, port));
        assert_false(listening_ports_lack(list, words, sizeof words));
        close(fd);
    }
}

static void who_is_lacking_is_said(void **state)
{
    (void)state;
    uint16_t there, lacking;
    char list[64], words[200], expected[80];
    int fd = bound_socket(AF_INET, &there), other = bound_socket(AF_INET, &lacking);
    assert_int_equal(listen(fd, 1), 0);
    snprintf(list, sizeof list, "%u,%u,udp:9", there, lacking);
    assert_true(listening_ports_lack(list, words, sizeof words));
    snprintf(expected, sizeof expected, "on TCP port %u; on which somebody does: ", lacking);
    assert_non_null(strstr(words, expected));
    assert_null(strstr(words, "none"));
    assert_false(listening_ports_lack("udp:9", words, sizeof words));
    assert_false(listening_ports_lack("", words, sizeof words));
    assert_false(listening_ports_lack(NULL, words, sizeof words));
    assert_true(listening_ports_lack(list, words, 5)); // what does not fit is cut
    assert_true(strlen(words) < 5);
    close(other);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listeners_are_found),
        cmocka_unit_test(who_is_lacking_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
