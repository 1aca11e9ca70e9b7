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
        const char *text, *protocol, *address, *path;
        bool tls;
    } good[] = {
        {"redis://localhost", "redis", "localhost:6379", "", false},
        {"redis://localhost/", "redis", "localhost:6379", "", false},
        {"redis-resp3://10.0.0.1:7000", "redis-resp3", "10.0.0.1:7000", "", false},
        {"memcached://[::1]", "memcached", "[::1]:11211", "", false},
        {"memcached-meta://[::1]:22", "memcached-meta", "[::1]:22", "", false},
        {"http://web:8080/", "http", "web:8080", "/", false},
        {"http://web", "http", "web:80", "", false},
        {"http://web/a/{key}?b=c&d", "http", "web:80", "/a/{key}?b=c&d", false},
        {"https://web", "http", "web:443", "", true},
        {"https://[::1]:8443/x", "http", "[::1]:8443", "/x", true},
        {"rediss://localhost", "redis", "localhost:6379", "", true},
        {"rediss://localhost/0", "redis", "localhost:6379", "", true},
        {"redis-resp3s://localhost", "redis-resp3", "localhost:6379", "", true},
        {"redis+cluster://localhost", "redis", "localhost:6379", "", false},
        {"redis-resp3s+cluster://[::1]:7000", "redis-resp3", "[::1]:7000", "", true},
        {"web:8080", NULL, "web:8080", "", false},
        {"unix:/run/a", NULL, "unix:/run/a", "", false},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct server_address address;
        struct server_url url;
        struct login login = {.user = ""};
        struct error err = {0};
        if (server_url_parse(good[i].text, &address, &url, &login, &err) < 0)
            fail_msg("%s: %s", good[i].text, err.text);
        assert_string_equal(address.text, good[i].address);
        assert_string_equal(url.protocol ? url.protocol->name : "",
                            good[i].protocol ? good[i].protocol : "");
        assert_string_equal(url.path, good[i].path);
        assert_int_equal(url.tls, good[i].tls);
        assert_int_equal(url.cluster, strstr(good[i].text, "+cluster") != NULL);
        assert_string_equal(login.user, "");
        assert_int_equal(login.database, 0);
    }
}

static void urls_name_who_comes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *address, *user;
        uint32_t database;
    } good[] = {
        {"redis://me@localhost/12", "localhost:6379", "me", 12},
        {"redis-resp3://me@[::1]:7000", "[::1]:7000", "me", 0},
        {"redis://h/0", "h:6379", "", 0},
        {"memcached://a@b@c:22/", "c:22", "a@b", 0},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct server_address address;
        struct server_url url;
        struct login login = {.user = ""};
        struct error err = {0};
        if (server_url_parse(good[i].text, &address, &url, &login, &err) < 0)
            fail_msg("%s: %s", good[i].text, err.text);
        assert_string_equal(address.text, good[i].address);
        assert_string_equal(login.user, good[i].user);
        assert_int_equal(login.database, good[i].database);
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
        {"redis://host/3a", "not \"/3a\""},
        {"redis://host?3", "not \"?3\""},
        {"memcached://host/3", "not \"/3\""},
        {"redis://host/12345678901", "no server has so many databases"},
        {"redis://m%65@host", "give that user by --user"},
        {"http://me@host", "protocol http knows no login"},
        {"http://host?b", "not \"?b\""},
        {"s://host", "\"s\" is not one of"},
        {"httpss://host", "\"httpss\" is not one of"},
        {"redis://me:secret@host", "the password in the URL can be read by everyone"},
        {"redis://host:0", "the port must be"},
        {"redis://a:b:1", "write an IPv6 address in brackets"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct server_address address;
        struct server_url url;
        struct login login = {.user = ""};
        struct error err = {0};
        assert_int_equal(server_url_parse(bad[i].text, &address, &url, &login, &err), -ERROR_INPUT);
        if (!strstr(err.text, bad[i].said))
            fail_msg("%s: said %s", bad[i].text, err.text);
    }
    char text[600];
    memset(text, 'a', sizeof text);
    memcpy(text, "redis://", 8);
    text[sizeof text - 1] = '\0';
    struct server_address address;
    struct server_url url;
    struct login login = {.user = ""};
    struct error err = {0};
    assert_int_equal(server_url_parse(text, &address, &url, &login, &err), -ERROR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_name_their_protocol),
        cmocka_unit_test(urls_name_who_comes),
        cmocka_unit_test(what_is_no_server_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
