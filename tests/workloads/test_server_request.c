// SPDX-License-Identifier: MIT
//
// A server's half of its protocols: what each request says, and which end the stream.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/server_request.h"

static enum server_request_kind kind_of(const char *text, size_t *taken)
{
    struct server_request request;
    *taken = server_request_read(false, text, strlen(text), &request);
    return request.kind;
}

static bool span_is(const struct text_span *span, const char *text)
{
    return span->count == strlen(text) && memcmp(span->bytes, text, span->count) == 0;
}

static void gets_name_their_keys(void **state)
{
    (void)state;
    static const char text[] = "get  a bc   d \r\nget e\r\n";
    struct server_request request;
    struct text_span key;
    assert_int_equal(server_request_read(false, text, sizeof text - 1, &request), 16);
    assert_int_equal(request.kind, SERVER_GET);
    assert_true(server_request_next_key(&request.keys, &key) && span_is(&key, "a"));
    assert_true(server_request_next_key(&request.keys, &key) && span_is(&key, "bc"));
    assert_true(server_request_next_key(&request.keys, &key) && span_is(&key, "d"));
    assert_false(server_request_next_key(&request.keys, &key));
}

// Keys and values may hold any bytes but those that part them.
static void sets_bring_their_value(void **state)
{
    (void)state;
    static const char text[] = "set k\0y 4294967295 -1 6 noreply\r\na\r\n\0bc\r\nget";
    const size_t whole = sizeof text - 1 - 3;
    struct server_request request;
    for (size_t count = 0; count < whole; count++)
        assert_int_equal(server_request_read(false, text, count, &request), 0);
    assert_int_equal(server_request_read(false, text, sizeof text - 1, &request), whole);
    assert_int_equal(request.kind, SERVER_SET);
    assert_memory_equal(request.key.bytes, "k\0y", 3);
    assert_int_equal(request.key.count, 3);
    assert_int_equal(request.value.count, 6);
    assert_memory_equal(request.value.bytes, "a\r\n\0bc", 6);
    assert_true(request.flags == 4294967295u && request.no_reply);
    assert_int_equal(server_request_read(false, "set k 0 0 1\r\nabcd", 17, &request), 16);
    assert_int_equal(request.kind, SERVER_BAD_DATA);
    assert_false(request.no_reply);
}

static void what_cannot_be_ends_the_stream(void **state)
{
    (void)state;
    static const char *const wrong[] = {"set\r\n",
                                        "set k 0 0\r\n",
                                        "set k 0 0 -1\r\n",
                                        "set k 0 0 1x\r\n",
                                        "set k 0 0 1048577\r\n",
                                        "set k x 0 1\r\n",
                                        "set k 4294967296 0 1\r\n",
                                        "set k 0 0 99999999999999999999999\r\n"};
    struct server_request request;
    size_t taken;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(kind_of(wrong[i], &taken), SERVER_BAD_SET);
        assert_int_equal(taken, strlen(wrong[i]));
    }
    char *key = malloc(300);
    snprintf(key, 300, "set %0251d 0 0 1\r\n", 7);
    assert_int_equal(kind_of(key, &taken), SERVER_BAD_SET);
    free(key);
    char *line = malloc(SERVER_LINE_BYTES);
    memset(line, 'x', SERVER_LINE_BYTES);
    assert_int_equal(server_request_read(false, line, SERVER_LINE_BYTES - 1, &request), 0);
    assert_int_equal(server_request_read(false, line, SERVER_LINE_BYTES, &request),
                     SERVER_LINE_BYTES);
    assert_int_equal(request.kind, SERVER_LONG_LINE);
    free(line);
}

static void the_rest_is_told_apart(void **state)
{
    (void)state;
    size_t taken;
    assert_int_equal(kind_of("version\r\n", &taken), SERVER_VERSION);
    assert_int_equal(kind_of("quit\n", &taken), SERVER_QUIT);
    assert_int_equal(taken, 5);
    assert_int_equal(kind_of("\r\n", &taken), SERVER_UNKNOWN);
    assert_int_equal(kind_of("getting a\r\n", &taken), SERVER_UNKNOWN);
    struct server_request request;
    char call[LAB_REQUEST_BYTES];
    const struct request asked = {.value_bytes = 9, .number = 5, .service_ns = 77};
    assert_int_equal(lab_protocol.encode(&asked, call, sizeof call), LAB_REQUEST_BYTES);
    assert_int_equal(server_request_read(true, call, sizeof call - 1, &request), 0);
    assert_int_equal(server_request_read(true, call, sizeof call, &request), sizeof call);
    assert_int_equal(request.kind, SERVER_CALL);
    assert_true(request.call.id == 5 && request.call.payload_bytes == 9 &&
                request.call.service_ns == 77);
    call[0] = 'X';
    assert_int_equal(server_request_read(true, call, sizeof call, &request), sizeof call);
    assert_int_equal(request.kind, SERVER_BAD_CALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gets_name_their_keys),
        cmocka_unit_test(sets_bring_their_value),
        cmocka_unit_test(what_cannot_be_ends_the_stream),
        cmocka_unit_test(the_rest_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
