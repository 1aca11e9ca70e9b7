// SPDX-License-Identifier: MIT
//
// The memcached text codec: what it writes, and that what it reads does not depend on where the
// bytes are split.
#include "base/hash.h"
#include "tests/workloads/protocols/codec_test.h"
#include "workloads/protocols/memcached_text.h"
#include "workloads/protocols/protocols.h"

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
    struct request expiring = set;
    expiring.expiry_s = 60;
    assert_int_equal(protocol->encode(&expiring, out, sizeof out), sizeof expected);
    assert_memory_equal(out, "set 0017 0 60 5\r\na", 18);
    struct request removing = get;
    removing.operation = MEMCACHED_DELETE;
    check_request(protocol, &removing, "delete 0017\r\n", 13);
}

static void replies_survive_any_split(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {
        REPLY_VALUE,        REPLY_MISS,         REPLY_STORED, REPLY_VALUE,
        REPLY_SERVER_ERROR, REPLY_CLIENT_ERROR, REPLY_VALUE,  REPLY_NOT_STORED,
        REPLY_CLIENT_ERROR, REPLY_STORED,       REPLY_STORED, REPLY_NOT_STORED,
        REPLY_SERVER_ERROR};
    check_splits(protocol,
                 STREAM("VALUE 01 0 5\r\nhello\r\nEND\r\n"
                        "END\r\n"
                        "STORED\r\n"
                        "VALUE 02 7 9 123\r\nEND\r\n\0\r\n\xff\r\nEND\r\n" // a value like a reply
                        "SERVER_ERROR out of memory\r\n"
                        "ERROR\r\n"
                        "VALUE 03 0 0\r\n\r\nEND\r\n" // empty
                        "NOT_STORED\r\n"
                        "CLIENT_ERROR bad\r\n"
                        "STORED\r\n"
                        "DELETED\r\n"
                        "NOT_FOUND\r\n"
                        "ERROR Too many open connections\r\n"),
                 kinds, 13);
}

static void nonsense_is_counted_and_passed(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {REPLY_MALFORMED, REPLY_MALFORMED, REPLY_MALFORMED,
                                            REPLY_OVERSIZED, REPLY_MALFORMED, REPLY_MALFORMED,
                                            REPLY_MALFORMED, REPLY_STORED};
    check_splits(protocol,
                 STREAM("HTTP/1.1 200 OK\r\n"
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
    feed(protocol, &parser, &stream, 0, stream.count, 8);
    assert_int_equal(stream.replies[0].kind, REPLY_VALUE);
    assert_int_equal(stream.replies[0].value_bytes, 3);
    assert_true(stream.replies[0].key_hash == hash_bytes("1", 1));
    assert_int_equal(stream.replies[1].kind, REPLY_MALFORMED); // two values: one key was asked for
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
            feed(protocol, &parser, &stream, at,
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
