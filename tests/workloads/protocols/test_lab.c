// SPDX-License-Identifier: MIT
//
// The laboratory protocol, both halves, against its picture in workloads/protocols/lab.h.
#include "tests/workloads/protocols/codec_test.h"
#include "workloads/protocols/lab.h"

static const struct protocol *const protocol = &lab_protocol;

static void requests_are_encoded_and_read(void **state)
{
    (void)state;
    static const char expected[] = "LABQ\0\0\1\2\0\0\0\0\0\0\0\7\0\0\0\0\0\1\x86\xa0";
    const struct request call = {.value_bytes = 0x102, .number = 7, .service_ns = 100000};
    check_request(protocol, &call, expected, LAB_REQUEST_BYTES);
    struct lab_request read;
    assert_true(lab_request_read(expected, &read));
    assert_int_equal(read.id, 7);
    assert_int_equal(read.payload_bytes, 0x102);
    assert_int_equal(read.service_ns, 100000);
    static const char untold[] = "LABQ\0\0\0\0\0\0\0\0\0\0\0\7\xff\xff\xff\xff\xff\xff\xff\xff";
    assert_true(lab_request_read(untold, &read));
    assert_true(read.service_ns == request_service_from_server);
    assert_false(lab_request_read("LABR\0\0\0\0\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\0", &read));
    assert_false(lab_request_read("LABQ\0\x10\0\1\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\0", &read));
}

static void a_reply_is_what_the_parser_expects(void **state)
{
    (void)state;
    char bytes[LAB_REPLY_BYTES + 3] = {0};
    lab_reply_write(bytes, 0, 3);
    struct stream stream = {.bytes = bytes, .count = sizeof bytes};
    check_splits(protocol, stream, (const enum reply_kind[]){REPLY_VALUE}, 1);
    struct reply_parser parser = {0};
    feed(protocol, &parser, &stream, 0, stream.count, 4);
    assert_int_equal(stream.replies[0].value_bytes, 3);
}

static void replies_survive_any_split(void **state)
{
    (void)state;
    static const enum reply_kind kinds[] = {REPLY_VALUE,     REPLY_VALUE, REPLY_OUT_OF_ORDER,
                                            REPLY_MALFORMED, REPLY_VALUE, REPLY_OVERSIZED,
                                            REPLY_VALUE};
    check_splits(protocol,
                 STREAM("LABR\0\0\0\4\0\0\0\0\0\0\0\0LABR"
                        "LABR\0\0\0\0\0\0\0\0\0\0\0\1"
                        "LABR\0\0\0\1\0\0\0\0\0\0\0\1x" // 2's turn
                        "VALUE 1 2 3\r\nEND"            // 16 bytes of another protocol
                        "\r\n"                          // skipped
                        "LABR\0\0\0\0\0\0\0\0\0\0\0\4"
                        "LABR\x7f\0\0\0\0\0\0\0\0\0\0\5"
                        "LABR\0\0\0\0\0\0\0\0\0\0\0\6"),
                 kinds, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_encoded_and_read),
        cmocka_unit_test(a_reply_is_what_the_parser_expects),
        cmocka_unit_test(replies_survive_any_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
