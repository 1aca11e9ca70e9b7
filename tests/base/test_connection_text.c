// SPDX-License-Identifier: MIT
//
// What the other end of a connection is called.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/connection_text.h"

static void check(const struct connection *connection, const char *expected)
{
    char text[CONNECTION_TEXT_BYTES];
    assert_string_equal(connection_peer_text(connection, text), expected);
}

static void test_addresses(void **state)
{
    (void)state;
    struct connection one = {.protocol = CONNECTION_TCP, .peer_port = 6379, .local_port = 40000};
    memcpy(one.peer, (uint8_t[16]){[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}, 16);
    check(&one, "127.0.0.1:6379");
    memcpy(one.peer, (uint8_t[16]){[15] = 1}, 16);
    check(&one, "[::1]:6379");
}

static struct connection path_connection(const char *path)
{
    struct connection one = {.protocol = CONNECTION_UNIX};
    char whole[CONNECTION_PATH_BYTES] = "";
    memcpy(whole, path, strnlen(path, sizeof whole));
    memcpy(one.local, whole, sizeof one.local);
    memcpy(one.peer, whole + sizeof one.local, sizeof one.peer);
    return one;
}

static void test_paths(void **state)
{
    (void)state;
    struct connection one = path_connection("/run/redis.sock");
    check(&one, "/run/redis.sock");
    one = path_connection("@abstract");
    check(&one, "@abstract");
    one = path_connection("ry/long/path/of/some/server.sock");
    check(&one, "...ry/long/path/of/some/server.sock");
    one = path_connection("two\nlines");
    check(&one, "two?lines");
    one = path_connection("");
    check(&one, "unix socket");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
