// SPDX-License-Identifier: MIT
//
// The memcached meta codec: what it writes, and what it makes of every answer, split everywhere.
#include "tests/workloads/protocols/codec_test.h"

static const struct protocol *const protocol = &memcached_meta_protocol;

static void requests_are_encoded(void **state)
{
    (void)state;
    static const char expected_get[] = "mg 0017 v O12\r\n";
    static const char expected_set[] = "ms 0017 5 O13\r\na\r\n\0z\r\n";
    const struct request get = {
        .operation = WORKLOAD_GET, .key = "0017", .key_bytes = 4, .number = 12};
    const struct request set = {.operation = WORKLOAD_SET,
                                .key = "0017",
                                .key_bytes = 4,
                                .value = "a\r\n\0z",
                                .value_bytes = 5,
                                .number = 13};
    char out[200];
    assert_int_equal(protocol->encode(&get, out, sizeof out), sizeof expected_get - 1);
    assert_memory_equal(out, expected_get, sizeof expected_get - 1);
    assert_int_equal(protocol->encode(&set, out, sizeof out), sizeof expected_set - 1);
    assert_memory_equal(out, expected_set, sizeof expected_set - 1);
    assert_true(sizeof expected_set - 1 <= protocol->request_bytes_max(4, 5));
    assert_int_equal(protocol->encode(&set, out, 20), 0);
    struct request expiring = set;
    expiring.expiry_s = 60;
    assert_int_equal(protocol->encode(&expiring, out, sizeof out), sizeof expected_set + 3);
    assert_memory_equal(out, "ms 0017 5 T60 O13\r\na", 20);
}

static void replies_survive_any_split(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {
        REPLY_VALUE,        REPLY_MISS,         REPLY_STORED,     REPLY_VALUE,
        REPLY_SERVER_ERROR, REPLY_CLIENT_ERROR, REPLY_NOT_STORED, REPLY_OUT_OF_ORDER,
        REPLY_OUT_OF_ORDER, REPLY_NOT_STORED,   REPLY_STORED};
    check_splits(protocol,
                 STREAM("VA 5 O0\r\nhello\r\n"
                        "EN\r\n"
                        "HD O2\r\n"
                        "VA 9 f30 O3 t-1\r\nHD\r\n\0\r\n\xff!\r\n" // a value like a reply
                        "SERVER_ERROR out of memory\r\n"
                        "CLIENT_ERROR bad\r\n"
                        "NS O6\r\n"
                        "HD O6\r\n" // 7's turn
                        "VA 2 O99\r\nab\r\n"
                        "EX\r\n"
                        "HD\r\n"),
                 kinds, 11);
}

static void nonsense_is_counted_and_passed(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {REPLY_MALFORMED, REPLY_MALFORMED, REPLY_MALFORMED,
                                            REPLY_OVERSIZED, REPLY_MALFORMED, REPLY_MALFORMED,
                                            REPLY_MALFORMED, REPLY_STORED};
    check_splits(protocol,
                 STREAM("STORED\r\n"
                        "\n"
                        "VA zz\r\n"
                        "VA 99999999999999999999999\r\n"
                        "VA 3 Ox\r\nabc\r\n"
                        "HDX\r\n"
                        "VA 3\r\nabcde" // its value does not end where it says
                        "HD\r\n"),
                 kinds, 8);
}

// Of a reply to another request it is the line that says so, not its value.
static void the_words_of_a_fault_are_its_line(void **state)
{
    (void)state;
    static const char text[] = "VA 2 O99\r\nab\r\n";
    struct reply_parser parser = {0};
    struct reply reply;
    size_t found;
    reply_parse(protocol, &parser, text, sizeof text - 1, &reply, 1, &found);
    assert_int_equal(found, 1);
    assert_int_equal(reply.kind, REPLY_OUT_OF_ORDER);
    assert_string_equal(parser.said, "VA 2 O99");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_encoded),
        cmocka_unit_test(replies_survive_any_split),
        cmocka_unit_test(nonsense_is_counted_and_passed),
        cmocka_unit_test(the_words_of_a_fault_are_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
