// SPDX-License-Identifier: MIT
//
// The memcached text codec: what it writes, and that what it reads does not depend on where the
// bytes are split.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/memcached_text.h"
#include "workloads/workload.h"

static const struct protocol *const protocol = &memcached_text_protocol;

static void requests_are_encoded(void **state)
{
    (void)state;
    char out[200];
    const struct request get = {
        .operation = WORKLOAD_GET, .key = "0017", .key_bytes = 4, .value = NULL, .value_bytes = 0};
    size_t bytes = protocol->encode(&get, out, sizeof out);
    assert_int_equal(bytes, 10);
    assert_memory_equal(out, "get 0017\r\n", 10);
    const struct request set = {.operation = WORKLOAD_SET,
                                .key = "0017",
                                .key_bytes = 4,
                                .value = "a\r\n\0z",
                                .value_bytes = 5};
    bytes = protocol->encode(&set, out, sizeof out);
    static const char expected[] = "set 0017 0 0 5\r\na\r\n\0z\r\n";
    assert_int_equal(bytes, sizeof expected - 1);
    assert_memory_equal(out, expected, sizeof expected - 1);
    assert_true(bytes <= protocol->request_bytes_max(4, 5));
    assert_int_equal(protocol->encode(&set, out, 40), 0); // too small a buffer is left alone
}

struct stream {
    const char *bytes;
    size_t count;
    struct reply replies[32];
    size_t reply_count;
};

#define STREAM(text)                                                                               \
    (struct stream)                                                                                \
    {                                                                                              \
        .bytes = text, .count = sizeof text - 1                                                    \
    }

// Feeds bytes [begin, end), in as many calls as it takes, with room for few replies a call.
static void feed(struct reply_parser *parser, struct stream *stream, size_t begin, size_t end,
                 size_t room)
{
    while (begin < end) {
        // A copy of its own size, so that reading past it is caught by the sanitizers.
        char *copy = malloc(end - begin);
        assert_non_null(copy);
        memcpy(copy, stream->bytes + begin, end - begin);
        size_t found = 0;
        size_t used = protocol->parse(parser, copy, end - begin,
                                      stream->replies + stream->reply_count, room, &found);
        free(copy);
        assert_true(used > 0 && used <= end - begin && found <= room);
        stream->reply_count += found;
        assert_true(stream->reply_count < 30);
        begin += used;
    }
}

static void check_whole(struct stream *stream, const enum reply_kind *kinds, size_t count)
{
    uint64_t at = 0;
    assert_int_equal(stream->reply_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(stream->replies[i].kind, kinds[i]);
        assert_int_equal(stream->replies[i].begin, at);
        assert_true(stream->replies[i].end > at);
        at = stream->replies[i].end;
    }
}

// Every way to split the stream in three, whole, and byte by byte.
static void check_splits(struct stream stream, const enum reply_kind *kinds, size_t count)
{
    for (size_t first = 0; first <= stream.count; first++) {
        for (size_t second = first; second <= stream.count; second++) {
            struct reply_parser parser = {0};
            stream.reply_count = 0;
            feed(&parser, &stream, 0, first, 1 + first % 3);
            feed(&parser, &stream, first, second, 8);
            feed(&parser, &stream, second, stream.count, 8);
            check_whole(&stream, kinds, count);
            assert_int_equal(parser.offset, stream.count);
        }
    }
    struct reply_parser parser = {0};
    stream.reply_count = 0;
    for (size_t at = 0; at < stream.count; at++)
        feed(&parser, &stream, at, at + 1, 1);
    check_whole(&stream, kinds, count);
}

static void replies_survive_any_split(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {
        REPLY_VALUE,        REPLY_MISS,  REPLY_STORED,     REPLY_VALUE,        REPLY_SERVER_ERROR,
        REPLY_CLIENT_ERROR, REPLY_VALUE, REPLY_NOT_STORED, REPLY_CLIENT_ERROR, REPLY_STORED};
    check_splits(STREAM("VALUE 01 0 5\r\nhello\r\nEND\r\n"
                        "END\r\n"
                        "STORED\r\n"
                        "VALUE 02 7 9 123\r\nEND\r\n\0\r\n\xff\r\nEND\r\n" // a value like a reply
                        "SERVER_ERROR out of memory\r\n"
                        "ERROR\r\n"
                        "VALUE 03 0 0\r\n\r\nEND\r\n" // empty
                        "NOT_STORED\r\n"
                        "CLIENT_ERROR bad\r\n"
                        "STORED\r\n"),
                 kinds, 10);
}

static void nonsense_is_counted_and_passed(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {REPLY_MALFORMED, REPLY_MALFORMED, REPLY_MALFORMED,
                                            REPLY_OVERSIZED, REPLY_MALFORMED, REPLY_MALFORMED,
                                            REPLY_MALFORMED, REPLY_STORED};
    check_splits(STREAM("HTTP/1.1 200 OK\r\n"
                        "\n"
                        "VALUE x 0 zz\r\n"
                        "VALUE x 0 99999999999999999999999\r\n"
                        "VALUE x 4294967296999 1\r\n"
                        "VALUE x 0 3\r\nabcdeEND\r\n"    // its value does not end where it says
                        "VALUE y 0 1\r\na\r\nSTORED\r\n" // no END behind a value
                        "STORED\r\n"),
                 kinds, 8);
}

static void value_lengths_are_told(void **state)
{
    (void)state;
    struct stream stream =
        STREAM("VALUE 1 0 3\r\nabc\r\nEND\r\nVALUE 1 0 2\r\nab\r\nVALUE 2 0 5\r\n"
               "abcde\r\nEND\r\n");
    struct reply_parser parser = {0};
    feed(&parser, &stream, 0, stream.count, 8);
    assert_int_equal(stream.reply_count, 2);
    assert_int_equal(stream.replies[0].value_bytes, 3);
    assert_int_equal(stream.replies[1].value_bytes, 7);
}

static void long_lines_are_skipped(void **state)
{
    (void)state;
    static const size_t splits[] = {1, 7, 511, 512, 513, 5000};
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        char text[6000];
        struct stream stream = {.bytes = text, .count = sizeof text};
        memset(text, 'x', sizeof text);
        memcpy(text + 4990, "\r\nSTORED\r\n", 10);
        memcpy(text + 5000, "END\r\n", 5);
        stream.count = 5005;
        struct reply_parser parser = {0};
        for (size_t at = 0; at < stream.count; at += splits[i])
            feed(&parser, &stream, at,
                 at + splits[i] < stream.count ? at + splits[i] : stream.count, 8);
        static const enum reply_kind kinds[] = {REPLY_OVERSIZED, REPLY_STORED, REPLY_MISS};
        check_whole(&stream, kinds, 3);
    }
}

static void answers_fit_their_questions(void **state)
{
    (void)state;
    assert_true(protocol->answers(WORKLOAD_GET, REPLY_VALUE));
    assert_true(protocol->answers(WORKLOAD_GET, REPLY_MISS));
    assert_false(protocol->answers(WORKLOAD_GET, REPLY_STORED));
    assert_true(protocol->answers(WORKLOAD_SET, REPLY_STORED));
    assert_false(protocol->answers(WORKLOAD_SET, REPLY_VALUE));
    assert_true(protocol->answers(WORKLOAD_SET, REPLY_SERVER_ERROR));
    assert_ptr_equal(protocol_find("memcached"), protocol);
    assert_null(protocol_find("memcache"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_encoded),
        cmocka_unit_test(replies_survive_any_split),
        cmocka_unit_test(nonsense_is_counted_and_passed),
        cmocka_unit_test(value_lengths_are_told),
        cmocka_unit_test(long_lines_are_skipped),
        cmocka_unit_test(answers_fit_their_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
