// SPDX-License-Identifier: MIT
//
// Connections as ctnetlink tells them: which flow is which behind a translation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <string.h>

#include "profiler/bpf/packet_head.h"
#include "profiler/capsule/translations.h"

enum { KEY = 7 };

struct message {
    _Alignas(8) unsigned char bytes[512];
    size_t count;
};

// Attributes: what is put between begin() and end() is in it.
static size_t begin(struct message *to, int type)
{
    const struct nlattr head = {.nla_type = (uint16_t)type};
    memcpy(to->bytes + to->count, &head, sizeof head);
    to->count += sizeof head;
    return to->count - sizeof head;
}

static void end(struct message *to, size_t at)
{
    const uint16_t bytes = (uint16_t)(to->count - at);
    memcpy(to->bytes + at, &bytes, sizeof bytes);
    to->count = (to->count + 3) / 4 * 4;
}

static void put(struct message *to, int type, const void *value, size_t bytes)
{
    size_t at = begin(to, type);
    memcpy(to->bytes + to->count, value, bytes);
    to->count += bytes;
    end(to, at);
}

static void put_port(struct message *to, int type, uint16_t port)
{
    const uint8_t bytes[] = {(uint8_t)(port >> 8), (uint8_t)port};
    put(to, type, bytes, sizeof bytes);
}

static void put_tuple(struct message *to, int type, const struct packet_head *head)
{
    const bool is_four = packet_address_is_four(&head->source);
    const size_t from = is_four ? 12 : 0, bytes = 16 - from;
    size_t tuple = begin(to, type | NLA_F_NESTED), part = begin(to, CTA_TUPLE_IP | NLA_F_NESTED);
    put(to, is_four ? CTA_IP_V4_SRC : CTA_IP_V6_SRC, (const char *)&head->source + from, bytes);
    put(to, is_four ? CTA_IP_V4_DST : CTA_IP_V6_DST, (const char *)&head->destination + from,
        bytes);
    end(to, part);
    part = begin(to, CTA_TUPLE_PROTO | NLA_F_NESTED);
    put(to, CTA_PROTO_NUM, &head->protocol, 1);
    put_port(to, CTA_PROTO_SRC_PORT, head->source_port);
    put_port(to, CTA_PROTO_DST_PORT, head->destination_port);
    end(to, part);
    end(to, tuple);
}

static struct message connection(const struct packet_head *there, const struct packet_head *back)
{
    const struct nfgenmsg head = {.nfgen_family = 2};
    const uint32_t status = 0x1ff;
    struct message message = {.count = sizeof head};
    memcpy(message.bytes, &head, sizeof head);
    put(&message, CTA_STATUS, &status, sizeof status);
    put_tuple(&message, CTA_TUPLE_ORIG, there);
    put_tuple(&message, CTA_TUPLE_REPLY, back);
    return message;
}

// 10.0.0.FROM:FROM_PORT to 10.0.0.TO:TO_PORT.
static struct packet_head between(uint8_t from, uint16_t from_port, uint8_t to, uint16_t to_port)
{
    const uint8_t addresses[2][16] = {{[10] = 0xff, 0xff, 10, 0, 0, from},
                                      {[10] = 0xff, 0xff, 10, 0, 0, to}};
    struct packet_head head = {
        .protocol = PACKET_TCP, .source_port = from_port, .destination_port = to_port};
    memcpy(&head.source, addresses[0], 16);
    memcpy(&head.destination, addresses[1], 16);
    return head;
}

static void take(struct translations *to, struct packet_head there, struct packet_head back)
{
    struct message message = connection(&there, &back);
    translations_take(to, message.bytes, message.count);
}

static void assert_before(const struct translations *of, struct packet_head behind,
                          struct packet_head before)
{
    assert_int_equal(translations_before(of, packet_flow(&behind, KEY)), packet_flow(&before, KEY));
}

static void both_ends_are_translated(void **state)
{
    (void)state;
    struct translations of = {.key = KEY};
    // 1:1000 asks 9:80, which is 2:8080, to whom 8:2000 asks.
    take(&of, between(1, 1000, 9, 80), between(2, 8080, 8, 2000));
    assert_before(&of, between(8, 2000, 2, 8080), between(1, 1000, 9, 80));
    assert_before(&of, between(2, 8080, 8, 2000), between(9, 80, 1, 1000));
    assert_before(&of, between(1, 1000, 9, 80), between(1, 1000, 9, 80));
    assert_int_equal(of.all.count, 2);
    // And behind the next router.
    take(&of, between(8, 2000, 2, 8080), between(3, 81, 7, 3000));
    assert_before(&of, between(7, 3000, 3, 81), between(1, 1000, 9, 80));
    assert_before(&of, between(3, 81, 7, 3000), between(9, 80, 1, 1000));
    translations_free(&of);
}

static void what_is_not_translated_stays(void **state)
{
    (void)state;
    struct translations of = {.key = KEY};
    take(&of, between(1, 1000, 2, 80), between(2, 80, 1, 1000));
    assert_int_equal(of.all.count, 0);
    assert_before(&of, between(1, 1000, 2, 80), between(1, 1000, 2, 80));
    translations_free(&of);
}

static void addresses_of_ipv6_are_read(void **state)
{
    (void)state;
    struct translations of = {.key = KEY};
    struct packet_head there = between(1, 1000, 9, 80), back = between(2, 80, 1, 1000), behind;
    there.source.word[0] = there.destination.word[0] = back.source.word[0] =
        back.destination.word[0] = 0xfd;
    there.protocol = back.protocol = PACKET_UDP;
    behind = (struct packet_head){.source = back.destination,
                                  .destination = back.source,
                                  .source_port = 1000,
                                  .destination_port = 80,
                                  .protocol = PACKET_UDP};
    take(&of, there, back);
    assert_before(&of, behind, there);
    translations_free(&of);
}

// A port that one connection had, and later another.
static void of_two_it_is_none(void **state)
{
    (void)state;
    struct translations of = {.key = KEY};
    take(&of, between(1, 1000, 2, 80), between(2, 80, 8, 2000));
    take(&of, between(1, 1000, 2, 80), between(2, 80, 8, 2000)); // asked again
    assert_before(&of, between(8, 2000, 2, 80), between(1, 1000, 2, 80));
    take(&of, between(3, 1000, 2, 80), between(2, 80, 8, 2000));
    assert_before(&of, between(8, 2000, 2, 80), between(8, 2000, 2, 80));
    translations_free(&of);
}

// Whatever a message is cut to, nothing beyond it is read, and half a connection is none.
static void what_is_cut_off_is_nothing(void **state)
{
    (void)state;
    struct packet_head there = between(1, 1000, 9, 80), back = between(2, 8080, 8, 2000);
    const struct message whole = connection(&there, &back);
    for (size_t bytes = 0; bytes < whole.count; bytes++) {
        struct translations of = {.key = KEY};
        unsigned char *cut = malloc(bytes + 1); // where a sanitizer sees what is behind it
        assert_non_null(cut);
        memcpy(cut, whole.bytes, bytes);
        translations_take(&of, cut, bytes);
        assert_int_equal(of.all.count, 0);
        free(cut);
        translations_free(&of);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_are_translated),
        cmocka_unit_test(what_is_not_translated_stays),
        cmocka_unit_test(addresses_of_ipv6_are_read),
        cmocka_unit_test(of_two_it_is_none),
        cmocka_unit_test(what_is_cut_off_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
