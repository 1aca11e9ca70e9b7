// SPDX-License-Identifier: MIT
//
// The words of --filter and --sample, and that the filter they make takes what they say.
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "profiler/capsule/packet_words.h"

static struct packet_address address(const char *text)
{
    uint8_t bytes[16] = {[10] = 0xff, [11] = 0xff};
    struct packet_address out;
    if (inet_pton(AF_INET, text, bytes + 12) != 1)
        assert_int_equal(inet_pton(AF_INET6, text, bytes), 1);
    memcpy(&out, bytes, sizeof out);
    return out;
}

static struct packet_head request(void)
{
    return (struct packet_head){
        .source = address("10.0.0.1"),
        .destination = address("10.0.0.2"),
        .source_port = 40000,
        .destination_port = 11211,
        .family = PACKET_IPV4,
        .protocol = PACKET_UDP,
    };
}

static struct packet_head reply(void)
{
    struct packet_head there = request(), back = there;
    back.source = there.destination;
    back.destination = there.source;
    back.source_port = there.destination_port;
    back.destination_port = there.source_port;
    return back;
}

static bool takes(const char *text, const struct packet_head *head)
{
    struct packet_filter filter;
    struct error err = {0};
    if (packet_filter_parse(text, &filter, &err) < 0)
        fail_msg("\"%s\" was refused: %s", text, err.text);
    return packet_filter_matches(&filter, head);
}

static void words_take_what_they_say(void **state)
{
    (void)state;
    static const struct wanted {
        const char *text;
        bool request, reply;
    } all[] = {
        {"", true, true},
        {"udp port 11211", true, true},
        {"udp and port 11211", true, true},
        {"  udp\tport   11211 ", true, true},
        {"tcp port 11211", false, false},
        {"port 11212", false, false},
        {"dst port 11211", true, false},
        {"src port 11211", false, true},
        {"dst port 11211 and src port 40000", true, false},
        {"ip", true, true},
        {"ip6", false, false},
        {"host 10.0.0.1", true, true},
        {"host 10.0.0.3", false, false},
        {"src host 10.0.0.1", true, false},
        {"dst host 10.0.0.1", false, true},
        {"src host 10.0.0.1 and dst host 10.0.0.2 and udp and dst port 11211", true, false},
        {"host 10.0.0.1 and dst host 10.0.0.2", true, false},
        {"host ::ffff:10.0.0.1", true, true},
    };
    struct packet_head there = request(), back = reply();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (takes(all[i].text, &there) != all[i].request ||
            takes(all[i].text, &back) != all[i].reply)
            fail_msg("\"%s\": request %d, reply %d", all[i].text, takes(all[i].text, &there),
                     takes(all[i].text, &back));
}

static void a_later_fragment_is_asked_for_its_ends(void **state)
{
    (void)state;
    struct packet_filter filter;
    struct packet_head head = request();
    head.source_port = head.destination_port = 0; // it has none
    assert_int_equal(packet_filter_parse("udp port 11211 and host 10.0.0.1", &filter, NULL), 0);
    assert_false(packet_filter_matches(&filter, &head));
    assert_true(packet_filter_matches_ends(&filter, &head));
    assert_int_equal(packet_filter_parse("udp and host 10.0.0.9", &filter, NULL), 0);
    assert_false(packet_filter_matches_ends(&filter, &head));
}

static void others_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "port",
        "port 0",
        "port 65536",
        "port x",
        "port -1",
        "port 1x",
        "host",
        "host a",
        "host 1.2.3",
        "src",
        "src udp",
        "udp or tcp",
        "and udp",
        "udp and",
        "udp and and port 1",
        "udp tcp",
        "ip ip6",
        "port 1 port 2",
        "not udp",
        "(udp)",
        "src port",
        "dst host 1.2.3.",
        "port 1 and src",
        "icmp",
        "net 10.0.0.0/8",
        "host 1.2.3.4 host 1.2.3.5",
        "udp port 99999999999999999999",
        "UDP",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct packet_filter filter;
        struct error err = {0};
        if (packet_filter_parse(bad[i], &filter, &err) != -ERROR_INPUT)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_non_null(strstr(err.text, "--filter"));
    }
}

static void samples(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "0",
                                      "2",
                                      "1/0",
                                      "1/",
                                      "1/x",
                                      "2/16",
                                      "1/16x",
                                      "1/-1",
                                      "1/1048577",
                                      "1/18446744073709551617",
                                      "x"};
    uint32_t one_in;
    assert_int_equal(packet_sample_parse("1", &one_in, NULL), 0);
    assert_int_equal(one_in, 1);
    assert_int_equal(packet_sample_parse("1/16", &one_in, NULL), 0);
    assert_int_equal(one_in, 16);
    assert_int_equal(packet_sample_parse("1/1048576", &one_in, NULL), 0);
    assert_int_equal(one_in, 1 << 20);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (packet_sample_parse(bad[i], &one_in, NULL) != -ERROR_INPUT)
            fail_msg("\"%s\" was taken", bad[i]);
}

// By the packets of a client that counts: identities that differ in one byte.
static void keys(void **state)
{
    static const char *const bad[] = {"", "0x", "0", "g", "0x12g", "12345678901234567", "-1", "1 "};
    uint64_t key;
    (void)state;
    assert_int_equal(packet_key_parse("flow-key", "0x1f", &key, NULL), 0);
    assert_int_equal(key, 0x1f);
    assert_int_equal(packet_key_parse("flow-key", "FEDCBA9876543210", &key, NULL), 0);
    assert_true(key == UINT64_C(0xfedcba9876543210));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (packet_key_parse("flow-key", bad[i], &key, NULL) != -ERROR_INPUT)
            fail_msg("\"%s\" is taken", bad[i]);
}

static void one_in_so_many_is_sampled(void **state)
{
    (void)state;
    enum { PACKETS = 100000 };
    static const uint32_t rates[] = {1, 2, 16, 1000};
    struct packet_head head = request();
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        uint32_t sampled = 0, limit = packet_sample_limit(rates[i]);
        for (uint64_t n = 0; n < PACKETS; n++) {
            uint64_t prefix[PACKET_PREFIX_WORDS] = {n};
            sampled += packet_is_sampled(packet_datagram(&head, 42, prefix), limit);
        }
        // Six standard deviations of a binomial count are below a fifth of 100, and much less of
        // more.
        uint32_t expected = PACKETS / rates[i], slack = rates[i] == 1 ? 0 : expected / 5 + 60;
        assert_in_range(sampled, expected > slack ? expected - slack : 0, expected + slack);
    }
}

static void what_differs_is_another_packet(void **state)
{
    (void)state;
    uint64_t prefix[PACKET_PREFIX_WORDS] = {1, 2, 3}, other[PACKET_PREFIX_WORDS] = {1, 2, 4};
    struct packet_head a = request(), b = a;
    uint64_t flow = packet_flow(&a, 7);
    assert_int_not_equal(flow, packet_flow(&a, 8));
    b.source_port++;
    assert_int_not_equal(flow, packet_flow(&b, 7));
    b = reply();
    assert_int_not_equal(flow, packet_flow(&b, 7));
    b = a;
    b.ip_bytes = 99; // of a fragment, say
    b.source_port++; // and translated on the way
    assert_int_equal(packet_datagram(&a, 7, prefix), packet_datagram(&b, 7, prefix));
    assert_int_not_equal(packet_datagram(&a, 7, prefix), packet_datagram(&a, 7, other));
    b.datagram_id = 1;
    assert_int_not_equal(packet_datagram(&a, 7, prefix), packet_datagram(&b, 7, prefix));
    assert_int_equal(packet_block(7, 0), packet_block(7, PACKET_BLOCK_BYTES - 1));
    assert_int_not_equal(packet_block(7, 0), packet_block(7, PACKET_BLOCK_BYTES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_take_what_they_say),
        cmocka_unit_test(a_later_fragment_is_asked_for_its_ends),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(samples),
        cmocka_unit_test(keys),
        cmocka_unit_test(one_in_so_many_is_sampled),
        cmocka_unit_test(what_differs_is_another_packet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
