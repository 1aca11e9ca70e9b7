// SPDX-License-Identifier: MIT
//
// The HTTP codec: bodies by length and in chunks, replies without one, and all that is not HTTP.
#include "tests/workloads/codec_test.h"
#include <stdio.h>

static const struct protocol *const protocol = &http_protocol;

static void requests_are_encoded(void **state)
{
    (void)state;
    static const char expected[] = "GET /0017 HTTP/1.1\r\nHost: taillight\r\n"
                                   "User-Agent: taillight\r\n\r\n";
    const struct request get = {.key = "0017", .key_bytes = 4, .value_bytes = 100};
    check_request(protocol, &get, expected, sizeof expected - 1);
}

static void replies_survive_any_split(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {REPLY_VALUE, REPLY_VALUE,        REPLY_MISS,
                                            REPLY_VALUE, REPLY_SERVER_ERROR, REPLY_CLIENT_ERROR,
                                            REPLY_VALUE, REPLY_VALUE};
    check_splits(
        protocol,
        STREAM("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
               "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n"
               "5\r\nab\r\nc\r\n1a;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nTrailer: x\r\n\r\n"
               "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n"
               "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nCONTENT-LENGTH:  2 \r\n\r\nHT"
               "HTTP/1.1 503 Busy\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n."
               "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"
               "HTTP/1.1 204 No Content\r\n\r\n"
               "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Length: 9\n\n0\n\n"),
        kinds, 8);
}

static void nonsense_is_counted_and_passed(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {REPLY_MALFORMED, REPLY_MALFORMED, REPLY_MALFORMED,
                                            REPLY_OVERSIZED, REPLY_MALFORMED, REPLY_MALFORMED,
                                            REPLY_OVERSIZED, REPLY_VALUE};
    check_splits(protocol,
                 STREAM("STORED\r\nEND\r\n" // skipped to the next status line
                        "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n"
                        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end\r\n" // no length
                        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"
                        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab\r\n"
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcde\r\n"
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffff\r\n"
                        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
                 kinds, 8);
}

// Whether the server said so, once a reply of that head has ended.
static bool closes(const char *head)
{
    char text[200];
    struct reply_parser parser = {0};
    struct stream stream = {.bytes = text};
    stream.count = (size_t)snprintf(text, sizeof text, "%s\r\nContent-Length: 1\r\n\r\n.", head);
    feed(protocol, &parser, &stream, 0, stream.count, 8);
    assert_int_equal(stream.reply_count, 1);
    assert_false(parser.in_reply);
    return parser.closing;
}

static void the_last_reply_says_so(void **state)
{
    (void)state;
    assert_false(closes("HTTP/1.1 200 OK"));
    assert_true(closes("HTTP/1.1 200 OK\r\nConnection: close"));
    assert_true(closes("HTTP/1.1 404 Not Found\r\nconnection:Close "));
    assert_false(closes("HTTP/1.1 200 OK\r\nConnection: keep-alive"));
    assert_true(closes("HTTP/1.0 200 OK"));
    assert_false(closes("HTTP/1.0 200 OK\r\nConnection: Keep-Alive"));
}

static void lengths_are_told_and_long_headers_passed(void **state)
{
    (void)state;
    char text[3000];
    size_t used = (size_t)snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nX-Long: ");
    memset(text + used, 'y', 2000);
    used += 2000;
    used += (size_t)snprintf(
        text + used, sizeof text - used,
        "\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\nabcd\r\n0\r\n\r\n");
    for (size_t piece = 1; piece < 700; piece += 37) {
        struct stream stream = {.bytes = text, .count = used};
        struct reply_parser parser = {0};
        for (size_t at = 0; at < used; at += piece)
            feed(protocol, &parser, &stream, at, at + piece < used ? at + piece : used, 4);
        assert_int_equal(stream.reply_count, 1);
        assert_int_equal(stream.replies[0].kind, REPLY_VALUE);
        assert_int_equal(stream.replies[0].value_bytes, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_encoded),
        cmocka_unit_test(replies_survive_any_split),
        cmocka_unit_test(nonsense_is_counted_and_passed),
        cmocka_unit_test(the_last_reply_says_so),
        cmocka_unit_test(lengths_are_told_and_long_headers_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
