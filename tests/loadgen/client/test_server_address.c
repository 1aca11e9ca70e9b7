// SPDX-License-Identifier: MIT
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <unistd.h>
#include <cmocka.h>

#include "loadgen/client/server_address.h"

static void addresses_are_split(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host;
        uint16_t port;
    } good[] = {{"localhost:11211", "localhost", 11211},
                {"10.0.0.1:1", "10.0.0.1", 1},
                {"[::1]:65535", "::1", 65535},
                {"[fe80::1%eth0]:80", "fe80::1%eth0", 80},
                {"udp:localhost:11211", "localhost", 11211},
                {"udp:[::1]:11211", "::1", 11211},
                {"unix:/run/a:b.sock", "/run/a:b.sock", 0}};
    struct server_address address;
    struct error err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(server_address_parse(good[i].text, &address, &err), 0);
        assert_string_equal(address.host, good[i].host);
        assert_int_equal(address.port, good[i].port);
        assert_string_equal(address.text, good[i].text);
        assert_int_equal(address.transport, good[i].text[0] != 'u'   ? SERVER_TCP
                                            : good[i].text[1] == 'd' ? SERVER_UDP
                                                                     : SERVER_UNIX);
    }
    static const char *const bad[] = {"",
                                      ":",
                                      "host",
                                      "host:",
                                      "host:0",
                                      "host:65536",
                                      ":80",
                                      "host:80x",
                                      "::1:80",
                                      "[::1:80",
                                      "[]:80",
                                      "[:80",
                                      "[:]:",
                                      "host:-1",
                                      "h: 80",
                                      "host:+80",
                                      "]:80:80",
                                      "udp:",
                                      "udp:80",
                                      "udp:::1:80",
                                      "udp:host",
                                      "unix:",
                                      "unix:relative.sock"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memset(&err, 0, sizeof err);
        if (server_address_parse(bad[i], &address, &err) != -ERROR_INPUT || !err.text[0])
            fail_msg("\"%s\" was taken", bad[i]);
    }
}

static void a_unix_socket_has_a_path_of_bounded_length(void **state)
{
    (void)state;
    char text[200] = "unix:/";
    struct server_address address;
    struct error err;
    memset(text + 6, 'x', 106);
    assert_int_equal(server_address_parse(text, &address, &err), 0); // 107 bytes
    assert_int_equal(server_address_resolve(&address, &err), 0);
    assert_int_equal(address.socket_address.ss_family, AF_UNIX);
    assert_string_equal(((struct sockaddr_un *)&address.socket_address)->sun_path, text + 5);
    text[112] = 'x';
    assert_int_equal(server_address_parse(text, &address, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "107 bytes"));
    uint8_t bytes[16];
    static const uint8_t none[16];
    uint16_t port;
    server_address_bytes(&address.socket_address, bytes, &port);
    assert_memory_equal(bytes, none, 16);
}

static void addresses_become_sixteen_bytes(void **state)
{
    (void)state;
    struct server_address address;
    struct error err;
    uint8_t bytes[16];
    uint16_t port;
    assert_int_equal(server_address_parse("127.0.0.2:21150", &address, &err), 0);
    assert_int_equal(server_address_resolve(&address, &err), 0);
    server_address_bytes(&address.socket_address, bytes, &port);
    static const uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 2};
    assert_memory_equal(bytes, mapped, 16);
    assert_int_equal(port, 21150);
    assert_int_equal(server_address_parse("[::1]:21151", &address, &err), 0);
    assert_int_equal(server_address_resolve(&address, &err), 0);
    server_address_bytes(&address.socket_address, bytes, &port);
    assert_memory_equal(bytes, &in6addr_loopback, 16);
    assert_int_equal(port, 21151);
}

// At the first two addresses nobody listens.
static void the_address_that_accepts_is_kept(void **state)
{
    (void)state;
    struct sockaddr_in places[3];
    struct addrinfo found[3];
    struct server_address address;
    struct error err;
    socklen_t bytes = sizeof *places;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    for (unsigned i = 0; i < 3; i++) {
        places[i] = (struct sockaddr_in){.sin_family = AF_INET,
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK + i)};
        found[i] = (struct addrinfo){.ai_family = AF_INET,
                                     .ai_addr = (void *)&places[i],
                                     .ai_addrlen = bytes,
                                     .ai_next = i < 2 ? &found[i + 1] : NULL};
    }
    assert_int_equal(bind(listener, (void *)&places[2], bytes), 0);
    assert_int_equal(getsockname(listener, (void *)&places[2], &bytes), 0);
    places[0].sin_port = places[1].sin_port = places[2].sin_port;
    assert_int_equal(server_address_parse("name:80", &address, &err), 0);
    server_address_choose(&address, found, true);
    assert_memory_equal(&address.socket_address, &places[0], bytes); // nobody does
    assert_int_equal(listen(listener, 4), 0);
    server_address_choose(&address, found, true);
    assert_memory_equal(&address.socket_address, &places[2], bytes);
    assert_int_equal(address.socket_address_bytes, bytes);
    server_address_choose(&address, found, false);
    assert_memory_equal(&address.socket_address, &places[0], bytes);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_split),
        cmocka_unit_test(the_address_that_accepts_is_kept),
        cmocka_unit_test(a_unix_socket_has_a_path_of_bounded_length),
        cmocka_unit_test(addresses_become_sixteen_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
