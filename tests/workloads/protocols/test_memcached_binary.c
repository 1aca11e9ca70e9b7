// SPDX-License-Identifier: MIT
//
// The memcached binary codec: requests byte by byte, replies of every status split everywhere.
#include "tests/workloads/protocols/codec_test.h"

static const struct protocol *const protocol = &memcached_binary_protocol;

static void requests_are_encoded(void **state)
{
    (void)state;
    const struct request get = {
        .operation = WORKLOAD_GET, .key = "0017", .key_bytes = 4, .number = 0x01020304};
    static const char expected_get[] = "\x80\0\0\4\0\0\0\0"
                                       "\0\0\0\4\1\2\3\4"
                                       "\0\0\0\0\0\0\0\0"
                                       "0017";
    check_request(protocol, &get, expected_get, sizeof expected_get - 1);
    const struct request set = {.operation = WORKLOAD_SET,
                                .key = "0017",
                                .key_bytes = 4,
                                .value = "a\r\n\0z",
                                .value_bytes = 5,
                                .number = 7};
    static const char expected_set[] = "\x80\1\0\4\x8\0\0\0"
                                       "\0\0\0\x11\0\0\0\7"
                                       "\0\0\0\0\0\0\0\0"
                                       "\0\0\0\0\0\0\0\0"
                                       "0017a\r\n\0z";
    check_request(protocol, &set, expected_set, sizeof expected_set - 1);
    struct request expiring = set;
    expiring.expiry_s = 0x010203;
    static const char expected_expiring[] = "\x80\1\0\4\x8\0\0\0"
                                            "\0\0\0\x11\0\0\0\7"
                                            "\0\0\0\0\0\0\0\0"
                                            "\0\0\0\0\0\1\2\3"
                                            "0017a\r\n\0z";
    check_request(protocol, &expiring, expected_expiring, sizeof expected_expiring - 1);
}

// A reply: opcode, extras and status, body bytes, opaque, and (by the caller) the body.
#define REPLY(opcode, extras, status, body, opaque)                                                \
    "\x81" opcode "\0\0" extras "\0" status "\0\0\0" body "\0\0\0" opaque "\0\0\0\0\0\0\0\0"

static void replies_survive_any_split(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {
        REPLY_VALUE,      REPLY_MISS,         REPLY_STORED,       REPLY_VALUE,
        REPLY_NOT_STORED, REPLY_SERVER_ERROR, REPLY_SERVER_ERROR, REPLY_OUT_OF_ORDER,
        REPLY_MALFORMED,  REPLY_STORED,       REPLY_CLIENT_ERROR};
    check_splits(
        protocol,
        STREAM(REPLY("\0", "\4", "\0\0", "\7", "\0") "\0\0\0\0a\x81z" // a value like a magic
               REPLY("\0", "\0", "\0\1", "\11", "\1") "Not found"     //
               REPLY("\1", "\0", "\0\0", "\0", "\2")                  //
               REPLY("\0", "\4", "\0\0", "\4", "\3") "\0\0\0\0"       // empty value
               REPLY("\1", "\0", "\0\2", "\0", "\4")                  // key exists
               REPLY("\1", "\0", "\0\x82", "\1", "\5") "m"            // no memory
               REPLY("\1", "\0", "\0\3", "\0", "\6")                  // too large
               REPLY("\1", "\0", "\0\0", "\0", "\6")                  // number 7's turn
               REPLY("\7", "\0", "\0\0", "\1", "\x8") "q"             // another opcode
               REPLY("\1", "\0", "\0\0", "\0", "\11")                 //
               REPLY("\1", "\0", "\0\4", "\0", "\12")),               // invalid arguments
        kinds, 11);
}

static void nonsense_is_counted_and_passed(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {REPLY_MALFORMED, REPLY_STORED, REPLY_OVERSIZED,
                                            REPLY_MALFORMED, REPLY_MALFORMED};
    check_splits(protocol,
                 STREAM("ERROR\r\n" // a text answer: skipped to the next magic byte
                        REPLY("\1", "\0", "\0\0", "\0", "\1") //
                        "\x81\0\0\0\0\0\0\0\xff\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0"
                        "junk"                                      //
                        REPLY("\0", "\4", "\0\0", "\3", "\3") "abc" // extras longer than the body
                        REPLY("\0", "\0", "\x77\0", "\0", "\4")),   // a status nobody knows
                 kinds, 5);
}

// As a memcached that is full answers to anything.
static void a_line_of_text_is_quoted(void **state)
{
    (void)state;
    struct stream stream = STREAM("ERROR Too many open connections\r\n");
    struct reply_parser parser = {0};
    feed(protocol, &parser, &stream, 0, stream.count, 8);
    assert_int_equal(stream.reply_count, 0);
    assert_true(parser.refused);
    assert_string_equal(parser.said, "ERROR Too many open connections");
    stream = STREAM("ERROR Too many cooks\r\n");
    parser = (struct reply_parser){0};
    feed(protocol, &parser, &stream, 0, stream.count, 8);
    assert_int_equal(stream.reply_count, 1);
    assert_int_equal(stream.replies[0].kind, REPLY_MALFORMED);
    assert_false(parser.refused);
    assert_string_equal(parser.said, "ERROR Too many cooks");
}

static void value_lengths_are_told(void **state)
{
    (void)state;
    struct stream stream = STREAM(REPLY("\0", "\4", "\0\0", "\7", "\0") "\0\0\0\0abc");
    struct reply_parser parser = {0};
    feed(protocol, &parser, &stream, 0, stream.count, 8);
    assert_int_equal(stream.reply_count, 1);
    assert_int_equal(stream.replies[0].value_bytes, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_encoded),
        cmocka_unit_test(replies_survive_any_split),
        cmocka_unit_test(nonsense_is_counted_and_passed),
        cmocka_unit_test(a_line_of_text_is_quoted),
        cmocka_unit_test(value_lengths_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
