// SPDX-License-Identifier: MIT
//
// The HTTP codec: bodies by length and in chunks, replies without one, and all that is not HTTP.
#include "tests/workloads/protocols/codec_test.h"
#include <stdio.h>

#include "base/error.h"
#include "workloads/protocols/http_words.h"

static const struct protocol *const protocol = &http_protocol;

static void requests_are_encoded(void **state)
{
    (void)state;
    static const char expected[] = "GET /0017 HTTP/1.1\r\nHost: taillight\r\n"
                                   "User-Agent: taillight\r\n\r\n";
    const struct request get = {.key = "0017", .key_bytes = 4, .value_bytes = 100};
    check_request(protocol, &get, expected, sizeof expected - 1);
}

// With a path, a host and headers of one's own, and with a body.
static void requests_say_what_the_workload_says(void **state)
{
    (void)state;
    static const char expected_get[] = "GET /a/0017?b HTTP/1.1\r\nHost: web:80\r\n"
                                       "User-Agent: taillight\r\nAccept: */*\r\n\r\n";
    static const char expected_post[] = "POST /a/0017?b HTTP/1.1\r\nHost: web:80\r\n"
                                        "User-Agent: taillight\r\nAccept: */*\r\n"
                                        "Content-Length: 5\r\n\r\n\r\n\0ab";
    static const char expected_fixed[] = "PUT /x HTTP/1.1\r\nHost: web:80\r\n"
                                         "user-agent: me\r\nContent-Length: 0\r\n\r\n";
    const char *const accept[] = {"Accept: */*"}, *const agent[] = {"user-agent: me"};
    struct http_words words = {0};
    struct error err;
    assert_int_equal(http_words_set(&words, "/a/{key}?b", NULL, accept, 1, &err), 0);
    assert_int_equal(http_words_set(&words, NULL, "web:80", NULL, 0, &err), 0);
    struct request request = {.key = "0017", .key_bytes = 4, .http = &words};
    check_request(protocol, &request, expected_get, sizeof expected_get - 1);
    request.operation = (unsigned)protocol_operation_find(protocol, "post");
    request.value = "\r\n\0ab";
    request.value_bytes = 5;
    check_request(protocol, &request, expected_post, sizeof expected_post - 1);
    assert_int_equal(http_words_set(&words, "/x", NULL, agent, 1, &err), 0);
    request.operation = (unsigned)protocol_operation_find(protocol, "put");
    request.value_bytes = 0;
    check_request(protocol, &request, expected_fixed, sizeof expected_fixed - 1);
    http_words_free(&words);
}

static void what_cannot_stand_in_a_request_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path, *host, *header, *said;
    } bad[] = {
        {.path = "a", .said = "does not begin with /"},
        {.path = "/a b", .said = "write it as %20"},
        {.path = "/a\r\nX: y", .said = "write it as %0D"},
        {.path = "/\xc3\xa9", .said = "write it as %C3"},
        {.path = "/a#b", .said = "write it as %23"},
        {.path = "/{key}/{key}", .said = "more than once"},
        {.host = "", .said = "1 to 260 bytes"},
        {.host = "a b", .said = "is not HOST"},
        {.host = "a\r\nX: y", .said = "is not HOST"},
        {.header = "no colon", .said = "is not \"Name: value\""},
        {.header = ": x", .said = "is not \"Name: value\""},
        {.header = "A: b\r\nC: d", .said = "a byte that cannot stand there"},
        {.header = "HOST: x", .said = "`host`"},
        {.header = "content-length: 3", .said = "decides itself"},
        {.header = "Transfer-Encoding: chunked", .said = "decides itself"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct http_words words = {0};
        struct error err = {0};
        int status = http_words_set(&words, bad[i].path, bad[i].host,
                                    bad[i].header ? &bad[i].header : NULL, 1, &err);
        assert_int_equal(status, -ERROR_INPUT);
        if (!strstr(err.text, bad[i].said))
            fail_msg("said %s, not %s", err.text, bad[i].said);
        assert_int_equal(http_words_bytes(&words), 0);
        http_words_free(&words);
    }
}

static void replies_survive_any_split(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {REPLY_VALUE, REPLY_VALUE,        REPLY_MISS,
                                            REPLY_VALUE, REPLY_SERVER_ERROR, REPLY_VALUE,
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

// What is taken in one go where it is there at once, and what only looks so.
static void usual_replies_are_what_they_are_in_pieces(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {REPLY_VALUE,    REPLY_VALUE, REPLY_VALUE, REPLY_VALUE,
                                            REPLY_VALUE,    REPLY_VALUE, REPLY_VALUE, REPLY_VALUE,
                                            REPLY_VALUE,    REPLY_VALUE, REPLY_VALUE, REPLY_VALUE,
                                            REPLY_MALFORMED};
    check_splits(protocol,
                 STREAM("HTTP/1.1 200 OK\r\nContent-Type: a:b\r\nCache-Control: x\r\n"
                        "Content-Length: 3\r\nConnection: keep-alive\r\nTrailer: z\r\n\r\nabc"
                        "HTTP/1.1 200 \r\nX: Content-Length: 9\r\nContent-Length: 0\r\n\r\n"
                        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab"
                        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab"
                        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length:2 ,02,2\r\n\r\nab"
                        "HTTP/1.1 200 OK\r\nContent-Length: 2 \r\n\r\nab"
                        "HTTP/1.1 200 OK\r\ncontent-LENGTH:\t2\r\n\r\nab"
                        "HTTP/1.1 200 OK\r\nContent-Length: 000000000002\r\n\r\nab"
                        "HTTP/1.1 200 OK\r\nConnection: keep-alive, close\r\nContent-Length: 2\r\n"
                        "\r\nab"
                        "HTTP/1.1 200 OK\nContent-Length: 2\n\nab"
                        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\ntransfer-encoding:chunked\r\n\r\n"
                        "1\r\na\r\n0\r\n\r\n"
                        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"
                        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
                 kinds, 13);
}

// Which of them is right nobody can know.
static void lengths_that_differ_are_no_length(void **state)
{
    (void)state;
    static const char *const lists[] = {"3, 4", "3, 3, 4", "4,3", "3,", ",3", "3 3", "3,x", ","};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char text[100], said[60];
        struct stream stream = {.bytes = text};
        struct reply_parser parser = {0};
        snprintf(said, sizeof said, "Content-Length: %s", lists[i]);
        stream.count =
            (size_t)snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n%s\r\n\r\nabc", said);
        feed(protocol, &parser, &stream, 0, stream.count, 8);
        assert_int_equal(stream.reply_count, 1);
        assert_int_equal(stream.replies[0].kind, REPLY_MALFORMED);
        assert_string_equal(parser.said, said);
    }
}

static void nonsense_is_counted_and_passed(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {REPLY_MALFORMED, REPLY_MALFORMED, REPLY_OVERSIZED,
                                            REPLY_MALFORMED, REPLY_MALFORMED, REPLY_OVERSIZED,
                                            REPLY_MALFORMED, REPLY_VALUE};
    check_splits(protocol,
                 STREAM("STORED\r\nEND\r\n" // skipped to the next status line
                        "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n"
                        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"
                        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab\r\n"
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcde\r\n"
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffff\r\n"
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"
                        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
                 kinds, 8);
}

// However it comes: its end may be in the piece that makes it too long.
static void a_header_without_measure_is_oversized(void **state)
{
    (void)state;
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ";
    static const size_t pieces[] = {1, 1000, 1460, 60000, 100000};
    for (size_t lines = 1; lines <= 2; lines++)
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            static char text[80000];
            const size_t bytes = 70000;
            struct reply_parser parser = {0};
            struct stream stream = {.bytes = text};
            memset(text, 'x', sizeof text);
            memcpy(text, head, sizeof head - 1);
            memcpy(text + bytes, "\r\n\r\n", 4);
            if (lines == 2) // each of them not too long
                memcpy(text + bytes / 2, "\r\nX:", 4);
            for (size_t at = 0; at < bytes + 4 && stream.reply_count == 0; at += pieces[i])
                feed(protocol, &parser, &stream, at,
                     at + pieces[i] < bytes + 4 ? at + pieces[i] : bytes + 4, 8);
            assert_int_equal(stream.reply_count, 1);
            assert_int_equal(stream.replies[0].kind, lines == 2 ? REPLY_VALUE : REPLY_OVERSIZED);
        }
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
    assert_true(closes("HTTP/1.1 200 OK\r\nConnection: close, x"));
    assert_true(closes("HTTP/1.1 200 OK\r\nConnection: keep-alive ,\tClose ,"));
    assert_false(closes("HTTP/1.1 200 OK\r\nConnection: closed, x-close"));
    assert_false(closes("HTTP/1.0 200 OK\r\nConnection: , x, keep-alive"));
    // Of several headers, whichever comes first.
    assert_true(closes("HTTP/1.1 200 OK\r\nConnection: close\r\nConnection: keep-alive"));
    assert_true(closes("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: close"));
    assert_true(closes("HTTP/1.0 200 OK\r\nConnection: close\r\nConnection: keep-alive"));
    assert_false(closes("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nConnection: x"));
}

// A body that nothing else delimits, of replies and pieces of any length.
static void a_body_may_end_with_the_stream(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
        "HTTP/1.0 404 Not Found\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 103 Hints\r\nContent-Length: 1\r\n\r\nHTTP/1.1 500 x\r\n\r\n",
    };
    static const char body[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    static const enum reply_kind kinds[] = {REPLY_VALUE, REPLY_MISS, REPLY_VALUE,
                                            REPLY_SERVER_ERROR};
    char text[200];
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        for (size_t body_bytes = 0; body_bytes < sizeof body; body_bytes++) {
            struct stream stream = {.bytes = text};
            struct reply_parser parser = {0};
            struct reply reply;
            const size_t head_bytes = strlen(heads[i]);
            memcpy(text, heads[i], head_bytes);
            memcpy(text + head_bytes, body, body_bytes);
            stream.count = head_bytes + body_bytes;
            for (size_t at = 0; at < stream.count; at++) {
                if (at < head_bytes)
                    assert_false(reply_end_with_stream(&parser, &reply));
                feed(protocol, &parser, &stream, at, at + 1, 8);
            }
            assert_int_equal(stream.reply_count, 0);
            assert_true(parser.in_reply && parser.closing);
            assert_true(reply_end_with_stream(&parser, &reply));
            assert_int_equal(reply.kind, kinds[i]);
            assert_int_equal(reply.value_bytes, body_bytes);
            assert_int_equal(reply.end, stream.count);
            assert_false(parser.in_reply);
            assert_false(reply_end_with_stream(&parser, &reply));
        }
    }
}

// What answers a HEAD has the header of a reply to a GET, and nothing behind it.
static void a_head_has_no_body(void **state)
{
    (void)state;
    struct stream stream = STREAM("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
                                  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                  "HTTP/1.1 404 x\r\nConnection: close\r\n\r\n"
                                  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    static const enum reply_kind kinds[] = {REPLY_VALUE, REPLY_VALUE, REPLY_MISS, REPLY_VALUE};
    for (size_t piece = 1; piece <= stream.count; piece++) {
        struct reply_parser parser = {0};
        stream.reply_count = 0;
        for (size_t at = 0, used; at < stream.count; at += used) {
            size_t found, left = stream.count - at;
            parser.bodiless |= stream.reply_count < 3 && !parser.in_reply;
            used = reply_parse(protocol, &parser, stream.bytes + at, left < piece ? left : piece,
                               stream.replies + stream.reply_count, 1, &found);
            stream.reply_count += found;
        }
        check_whole(&stream, kinds, 4);
        assert_int_equal(stream.replies[0].value_bytes, 0);
        assert_int_equal(stream.replies[3].value_bytes, 5);
    }
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
        cmocka_unit_test(requests_say_what_the_workload_says),
        cmocka_unit_test(what_cannot_stand_in_a_request_is_refused),
        cmocka_unit_test(replies_survive_any_split),
        cmocka_unit_test(usual_replies_are_what_they_are_in_pieces),
        cmocka_unit_test(lengths_that_differ_are_no_length),
        cmocka_unit_test(nonsense_is_counted_and_passed),
        cmocka_unit_test(a_header_without_measure_is_oversized),
        cmocka_unit_test(the_last_reply_says_so),
        cmocka_unit_test(a_body_may_end_with_the_stream),
        cmocka_unit_test(a_head_has_no_body),
        cmocka_unit_test(lengths_are_told_and_long_headers_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
