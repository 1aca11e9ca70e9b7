// SPDX-License-Identifier: MIT
//
// memcached's UDP frames: replies in one and in several datagrams, in every order, some of them
// twice, and what is no reply.
#include "tests/workloads/protocols/codec_test.h"

#include <stdio.h>

#include "workloads/protocols/memcached_text.h"
#include "workloads/protocols/memcached_udp.h"

static void frames_are_eight_bytes(void **state)
{
    (void)state;
    char out[UDP_FRAME_BYTES];
    struct udp_frame frame;
    udp_frame_write(out, 0xabcd);
    assert_memory_equal(out, "\xab\xcd\0\0\0\1\0\0", UDP_FRAME_BYTES);
    assert_true(udp_frame_read(out, sizeof out, &frame));
    assert_int_equal(frame.id, 0xabcd);
    assert_int_equal(frame.sequence, 0);
    assert_int_equal(frame.count, 1);
    assert_true(udp_frame_read("\0\7\1\2\1\3\0\0x", 9, &frame));
    assert_int_equal(frame.sequence, 0x102);
    assert_int_equal(frame.count, 0x103);
    assert_false(udp_frame_read("\0\7\0\0\0\1\0", 7, &frame));   // too short
    assert_false(udp_frame_read("\0\7\0\0\0\0\0\0", 8, &frame)); // one of none
    assert_false(udp_frame_read("\0\7\0\2\0\2\0\0", 8, &frame)); // the third of two
}

static enum reply_kind parse_one(const struct protocol *protocol, uint64_t number, const char *text,
                                 size_t count)
{
    struct reply_parser parser = {0};
    struct reply reply;
    const struct udp_piece piece = {text, count};
    udp_reply_parse(protocol, &parser, number, &piece, 1, &reply);
    // Whatever it was, the next reply is read as from the start.
    const struct udp_piece next = {"EN O77\r\n", 8};
    enum reply_kind kind = reply.kind;
    if (protocol == &memcached_meta_protocol) {
        udp_reply_parse(protocol, &parser, 77, &next, 1, &reply);
        assert_int_equal(reply.kind, REPLY_MISS);
    }
    return kind;
}

static void a_datagram_holds_one_reply(void **state)
{
    (void)state;
    const struct protocol *text = &memcached_text_protocol, *meta = &memcached_meta_protocol;
    assert_int_equal(parse_one(text, 5, "VALUE a 0 3\r\nabc\r\nEND\r\n", 23), REPLY_VALUE);
    assert_int_equal(parse_one(text, 5, "END\r\n", 5), REPLY_MISS);
    assert_int_equal(parse_one(text, 5, "ERROR\r\n", 7), REPLY_CLIENT_ERROR);
    assert_int_equal(parse_one(text, 5, "END\r\nEND\r\n", 10), REPLY_MALFORMED);
    assert_int_equal(parse_one(text, 5, "VALUE a 0 3\r\nab", 15), REPLY_MALFORMED);
    assert_int_equal(parse_one(text, 5, "", 0), REPLY_MALFORMED);
    assert_int_equal(parse_one(meta, 5, "VA 1 O5\r\nx\r\n", 12), REPLY_VALUE);
    assert_int_equal(parse_one(meta, 5, "VA 1 O6\r\nx\r\n", 12), REPLY_OUT_OF_ORDER);
    assert_int_equal(parse_one(meta, 5, "VA 99 O5\r\nx\r\n", 13), REPLY_MALFORMED);
    char binary[24] = {(char)0x81, 0, 0, 0, 0, 0, 0, 1};
    binary[15] = 9; // opaque
    assert_int_equal(parse_one(&memcached_binary_protocol, 9, binary, 24), REPLY_MISS);
    assert_int_equal(parse_one(&memcached_binary_protocol, 8, binary, 24), REPLY_OUT_OF_ORDER);
}

static const char whole[] = "VALUE key 0 20\r\n0123456789abcdefghij\r\nEND\r\n";

// The sequence'th datagram of `whole` cut into `count`.
static enum udp_outcome add(struct udp_assembly *assembly, uint16_t sequence, uint16_t count)
{
    size_t each = (sizeof whole - 1) / count, begin = sequence * each;
    size_t bytes = sequence + 1 == count ? sizeof whole - 1 - begin : each;
    struct udp_frame frame = {.id = 1, .sequence = sequence, .count = count};
    char *datagram = malloc(UDP_FRAME_BYTES + bytes); // of its own size, for the sanitizers
    memcpy(datagram + UDP_FRAME_BYTES, whole + begin, bytes);
    enum udp_outcome outcome =
        udp_assembly_add(assembly, &frame, datagram, UDP_FRAME_BYTES + bytes);
    free(datagram);
    return outcome;
}

static void check_whole_reply(const struct udp_assembly *assembly)
{
    struct reply_parser parser = {0};
    struct reply reply;
    udp_reply_parse(&memcached_text_protocol, &parser, 3, assembly->pieces, assembly->wanted,
                    &reply);
    assert_int_equal(reply.kind, REPLY_VALUE);
    assert_int_equal(reply.value_bytes, 20);
}

static void datagrams_come_in_any_order(void **state)
{
    (void)state;
    static const uint16_t orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}};
    struct udp_assembly assembly;
    assert_int_equal(udp_assembly_init(&assembly, 2048), 0);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        udp_assembly_begin(&assembly, 4);
        for (int k = 0; k < 4; k++) {
            assert_int_equal(add(&assembly, orders[i][k], 4), k < 3 ? UDP_UNDER_WAY : UDP_WHOLE);
            assert_int_equal(add(&assembly, orders[i][k], 4), UDP_AGAIN);
        }
        check_whole_reply(&assembly);
    }
    udp_assembly_fini(&assembly);
}

static void the_impossible_is_told(void **state)
{
    (void)state;
    struct udp_assembly assembly;
    static const char datagram[UDP_FRAME_BYTES + 1000];
    const struct udp_frame first = {.sequence = 0, .count = 3};
    const struct udp_frame second = {.sequence = 1, .count = 3};
    assert_int_equal(udp_assembly_init(&assembly, 1500), 0);
    udp_assembly_begin(&assembly, 3);
    assert_int_equal(add(&assembly, 0, 4), UDP_IMPOSSIBLE); // of another reply
    assert_int_equal(udp_assembly_add(&assembly, &first, datagram, sizeof datagram), UDP_UNDER_WAY);
    assert_int_equal(udp_assembly_add(&assembly, &second, datagram, sizeof datagram),
                     UDP_IMPOSSIBLE); // more than fits
    udp_assembly_begin(&assembly, 60000);
    const struct udp_frame many = {.sequence = 59999, .count = 60000};
    assert_int_equal(udp_assembly_add(&assembly, &many, datagram, 9), UDP_IMPOSSIBLE);
    udp_assembly_begin(&assembly, 4); // as good as new
    for (uint16_t k = 0; k < 4; k++)
        add(&assembly, k, 4);
    check_whole_reply(&assembly);
    udp_assembly_fini(&assembly);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_eight_bytes),
        cmocka_unit_test(a_datagram_holds_one_reply),
        cmocka_unit_test(datagrams_come_in_any_order),
        cmocka_unit_test(the_impossible_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
