// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "loadgen/client/server_url.h"

static void urls_name_their_protocol(void **state)
{
    (void)state;
    static const struct {
        const char *text, *protocol, *address;
    } good[] = {
        {"redis://localhost", "redis", "localhost:6379"},
        {"redis://localhost/", "redis", "localhost:6379"},
        {"redis-resp3://10.0.0.1:7000", "redis-resp3", "10.0.0.1:7000"},
        {"memcached://[::1]", "memcached", "[::1]:11211"},
        {"memcached-meta://[::1]:22", "memcached-meta", "[::1]:22"},
        {"http://web:8080/", "http", "web:8080"},
        {"http://web", "http", "web:80"},
        {"web:8080", NULL, "web:8080"},
        {"unix:/run/a", NULL, "unix:/run/a"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct server_address address;
        const struct protocol *protocol;
        struct error err = {0};
        if (server_url_parse(good[i].text, &address, &protocol, &err) < 0)
            fail_msg("%s: %s", good[i].text, err.text);
        assert_string_equal(address.text, good[i].address);
        assert_string_equal(protocol ? protocol->name : "",
                            good[i].protocol ? good[i].protocol : "");
    }
}

static void what_is_no_server_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } bad[] = {
        {"ftp://host", "\"ftp\" is not one of: memcached"},
        {"://host", "\"\" is not one of"},
        {"redis://", "names no host"},
        {"redis://host/3", "not \"/3\""},
        {"http://host/a?b", "not \"/a?b\""},
        {"redis://me:secret@host", "no user and no password"},
        {"redis://host:0", "the port must be"},
        {"redis://a:b:1", "write an IPv6 address in brackets"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct server_address address;
        const struct protocol *protocol;
        struct error err = {0};
        assert_int_equal(server_url_parse(bad[i].text, &address, &protocol, &err), -ERROR_INPUT);
        if (!strstr(err.text, bad[i].said))
            fail_msg("%s: said %s", bad[i].text, err.text);
    }
    char text[600];
    memset(text, 'a', sizeof text);
    memcpy(text, "redis://", 8);
    text[sizeof text - 1] = '\0';
    struct server_address address;
    const struct protocol *protocol;
    struct error err = {0};
    assert_int_equal(server_url_parse(text, &address, &protocol, &err), -ERROR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_name_their_protocol),
        cmocka_unit_test(what_is_no_server_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
