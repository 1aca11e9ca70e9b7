// SPDX-License-Identifier: MIT
//
// Recordings of packets: the requests that clients sent, whatever became of their segments.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <pcap/pcap.h>

#include "loadgen/recording/recording_pcap.h"
#include "workloads/protocols/memcached_text.h"
#include "workloads/protocols/redis.h"

enum { SYN = 2, ACK = 16, PORT_CLIENT = 40000, PORT_REDIS = 6379 };
enum { TCP_HEADER = 20 };

// A capture that is being made, in memory.
struct capture {
    uint8_t bytes[64 << 10];
    size_t count;
    uint64_t now_us;
    int link;
    bool six, vlan;     // how packets are written
    size_t snap;        // what is kept of each; 0: all
    bool server_speaks; // the next packet is the server's
    uint32_t acknowledged;
};

static void put(struct capture *capture, const void *bytes, size_t count)
{
    assert_true(capture->count + count <= sizeof capture->bytes);
    memcpy(capture->bytes + capture->count, bytes, count);
    capture->count += count;
}

static void put_16(struct capture *capture, unsigned value)
{
    put(capture, (const uint8_t[]){(uint8_t)(value >> 8), (uint8_t)value}, 2);
}

static void put_32(struct capture *capture, uint32_t value)
{
    put_16(capture, value >> 16);
    put_16(capture, value & 0xffff);
}

static void begin(struct capture *capture, int link)
{
    *capture = (struct capture){.link = link};
    const struct pcap_file_header header = {.magic = 0xa1b2c3d4,
                                            .version_major = 2,
                                            .version_minor = 4,
                                            .snaplen = 65535,
                                            .linktype = (bpf_u_int32)link};
    put(capture, &header, sizeof header);
}

static void put_link(struct capture *capture, unsigned type)
{
    static const uint8_t zeros[16];
    switch (capture->link) {
    case DLT_EN10MB:
        put(capture, zeros, 12);
        break;
    case DLT_LINUX_SLL:
        put(capture, zeros, 14);
        break;
    case DLT_LINUX_SLL2:
        put_16(capture, type);
        put(capture, zeros, 16);
        put_16(capture, 0);
        return;
    case DLT_NULL:
        put(capture, "\2\0\0\0", 4);
        return;
    default:
        return;
    }
    if (capture->vlan) {
        put_16(capture, 0x8100);
        put_16(capture, 7);
    }
    put_16(capture, type);
}

static void put_ip(struct capture *capture, size_t bytes)
{
    static const uint8_t ends[2][16] = {{10, 0, 0, 1}, {10, 0, 0, 2}};
    if (capture->six) {
        put_32(capture, 6u << 28);
        put_16(capture, (unsigned)(TCP_HEADER + bytes + 8));
        put(capture, (const uint8_t[]){0, 64}, 2); // hop-by-hop options come first
        put(capture, ends[capture->server_speaks], 16);
        put(capture, ends[!capture->server_speaks], 16);
        put(capture, (const uint8_t[]){6, 0, 1, 4, 0, 0, 0, 0}, 8);
        return;
    }
    put(capture, (const uint8_t[]){0x45, 0}, 2);
    put_16(capture, (unsigned)(20 + TCP_HEADER + bytes));
    put_32(capture, 0);
    put(capture, (const uint8_t[]){64, 6, 0, 0}, 4);
    put(capture, ends[capture->server_speaks], 4);
    put(capture, ends[!capture->server_speaks], 4);
}

// A segment, 1 ms after the one before.
static void put_segment(struct capture *capture, uint32_t sequence, unsigned flags,
                        const char *text, size_t bytes)
{
    static const uint8_t padding[6];
    uint32_t sizes[4];
    const size_t header_at = capture->count, begin_at = header_at + sizeof sizes;
    put(capture, (const uint8_t[sizeof sizes]){0}, sizeof sizes);
    put_link(capture, capture->six ? 0x86dd : 0x0800);
    put_ip(capture, bytes);
    put_16(capture, capture->server_speaks ? PORT_REDIS : PORT_CLIENT);
    put_16(capture, capture->server_speaks ? PORT_CLIENT : PORT_REDIS);
    put_32(capture, sequence);
    put_32(capture, capture->acknowledged);
    put(capture, (const uint8_t[]){5 << 4, (uint8_t)flags, 1, 0, 0, 0, 0, 0}, 8);
    put(capture, text, bytes);
    if (capture->link == DLT_EN10MB)
        put(capture, padding, sizeof padding); // as short frames have it
    size_t whole = capture->count - begin_at;
    size_t kept = capture->snap && capture->snap < whole ? capture->snap : whole;
    capture->count = begin_at + kept;
    sizes[0] = (uint32_t)(1000 + capture->now_us / 1000000);
    sizes[1] = (uint32_t)(capture->now_us % 1000000);
    sizes[2] = (uint32_t)kept;
    sizes[3] = (uint32_t)whole;
    memcpy(capture->bytes + header_at, sizes, sizeof sizes);
    capture->now_us += 1000;
}

static void put_text(struct capture *capture, uint32_t sequence, const char *text)
{
    put_segment(capture, sequence, ACK, text, strlen(text));
}

static int parse(struct capture *capture, const struct workload *workload,
                 struct recording *recording, struct error *err)
{
    FILE *file = fmemopen(capture->bytes, capture->count, "rb");
    assert_non_null(file);
    return recording_parse_pcap(file, "r.pcap", workload, recording, err);
}

static void load(struct capture *capture, struct recording *recording)
{
    struct workload workload;
    struct error err;
    workload_defaults(&workload);
    if (parse(capture, &workload, recording, &err) < 0)
        fail_msg("%s", err.text);
}

static void expect(const struct recording *recording, size_t i, unsigned ms, unsigned operation,
                   uint32_t key)
{
    assert_true(i < recording->requests.count);
    assert_in_range(recording->requests.items[i].offset_ns + 10, ms * 1000000, ms * 1000000 + 20);
    assert_int_equal(recording->requests.items[i].operation, operation);
    assert_int_equal(recording->requests.items[i].key, key);
}

static const char get_a[] = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n";                 // 20 bytes
static const char set_b[] = "*3\r\n$3\r\nSET\r\n$2\r\nbb\r\n$5\r\nhello\r\n"; // 32 bytes

static void put_a_get_and_a_set(struct capture *capture)
{
    put_segment(capture, 99, SYN, "", 0);
    put_text(capture, 100, get_a);
    put_text(capture, 120, set_b);
}

static void expect_a_get_and_a_set(struct capture *capture)
{
    struct recording recording;
    load(capture, &recording);
    assert_int_equal(recording.requests.count, 2);
    assert_int_equal(recording.gaps + recording.damaged + recording.left_out, 0);
    expect(&recording, 0, 0, WORKLOAD_GET, 0);
    expect(&recording, 1, 1, WORKLOAD_SET, 1);
    assert_int_equal(recording.keys.items[0].key_bytes, 1);
    assert_true(recording.keys.items[0].value_bytes == RECORDED_UNKNOWN);
    assert_int_equal(recording.keys.items[1].key_bytes, 2);
    assert_int_equal(recording.keys.items[1].value_bytes, 5);
    recording_free(&recording);
}

static void requests_are_found_on_every_link(void **state)
{
    (void)state;
    static const int links[] = {DLT_EN10MB, DLT_LINUX_SLL, DLT_LINUX_SLL2, DLT_RAW, DLT_NULL};
    static struct capture capture;
    for (size_t i = 0; i < 4 * sizeof links / sizeof *links; i++) {
        begin(&capture, links[i / 4]);
        capture.six = i & 1;
        capture.vlan = i & 2;
        put_a_get_and_a_set(&capture);
        expect_a_get_and_a_set(&capture);
    }
    begin(&capture, DLT_IEEE802_11);
    struct recording recording;
    struct workload workload;
    struct error err;
    workload_defaults(&workload);
    assert_int_equal(parse(&capture, &workload, &recording, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "r.pcap: packets of link type IEEE802_11 are not read"));
    recording_free(&recording);
}

// The bytes count, not how the network brought them.
static void segments_are_put_in_order(void **state)
{
    (void)state;
    static struct capture capture;
    struct recording recording;
    begin(&capture, DLT_EN10MB);
    put_segment(&capture, UINT32_MAX - 9, SYN, "", 0); // numbers begin at 0 again on the way
    const uint32_t first = UINT32_MAX - 8;
    put_text(&capture, first, "*2\r\n$3\r\nG");
    put_text(&capture, first, "*2\r\n$3\r\nG");
    put_text(&capture, first + 20, set_b);          // too early
    put_text(&capture, first + 4, "$3\r\nGET\r\n"); // half of it was there
    capture.server_speaks = true;
    put_text(&capture, 7, "$-1\r\n");
    capture.server_speaks = false;
    put_text(&capture, first + 13, "$1\r\na\r\n"); // longer ago than it seems
    put_text(&capture, first + 52, get_a);
    load(&capture, &recording);
    assert_int_equal(recording.gaps + recording.damaged + recording.left_out, 0);
    assert_int_equal(recording.requests.count, 3);
    expect(&recording, 0, 0, WORKLOAD_GET, 0);
    expect(&recording, 1, 0, WORKLOAD_SET, 1);
    expect(&recording, 2, 1, WORKLOAD_GET, 0);
    recording_free(&recording);

    // One byte a segment, each of them twice, every pair in the wrong order.
    begin(&capture, DLT_RAW);
    put_segment(&capture, 99, SYN, "", 0);
    for (unsigned round = 0; round < 2; round++)
        for (uint32_t i = 0; i < sizeof set_b - 1; i++)
            for (unsigned twice = 0; twice < 2; twice++)
                put_segment(&capture, 100 + round * 32 + (i ^ 1), ACK, &set_b[i ^ 1], 1);
    load(&capture, &recording);
    assert_int_equal(recording.gaps + recording.damaged + recording.left_out, 0);
    assert_int_equal(recording.requests.count, 2);
    recording_free(&recording);
}

// What the capture missed ends no replay, and is counted.
static void gaps_are_counted(void **state)
{
    (void)state;
    static struct capture capture;
    struct recording recording;
    begin(&capture, DLT_EN10MB);
    put_segment(&capture, 99, SYN, "", 0);
    put_text(&capture, 100, get_a);
    put_text(&capture, 140, "GET\r\n$1\r\nx\r\n"); // no request's begin
    capture.server_speaks = true;
    capture.acknowledged = 152;
    put_text(&capture, 7, "$-1\r\n"); // the server has it: nothing will come
    capture.server_speaks = false;
    put_text(&capture, 152, set_b);
    load(&capture, &recording);
    assert_int_equal(recording.gaps, 1);
    assert_int_equal(recording.requests.count, 2);
    expect(&recording, 1, 3, WORKLOAD_SET, 1);
    recording_free(&recording);

    // A value's bytes may be missing: its length is known.
    begin(&capture, DLT_EN10MB);
    put_segment(&capture, 99, SYN, "", 0);
    put_text(&capture, 100, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$9\r\nab");
    put_text(&capture, 130, "ghi\r\n");
    capture.server_speaks = true;
    capture.acknowledged = 135;
    put_text(&capture, 7, "+OK\r\n");
    capture.server_speaks = false;
    put_text(&capture, 135, get_a);
    load(&capture, &recording);
    assert_int_equal(recording.gaps, 1);
    assert_int_equal(recording.requests.count, 2);
    recording_free(&recording);

    // Begun in the middle of a connection, whose client has the higher port.
    begin(&capture, DLT_EN10MB);
    put_text(&capture, 80, "lo\r\n");
    put_text(&capture, 84, get_a);
    put_text(&capture, 104, set_b);
    put_text(&capture, 136, "\x16\x03\x01 what is this"); // and no commands in the end
    load(&capture, &recording);
    assert_int_equal(recording.gaps, 1);
    assert_int_equal(recording.requests.count, 2);
    recording_free(&recording);
}

static void what_was_not_kept_is_told(void **state)
{
    (void)state;
    static struct capture capture;
    struct recording recording;
    // Headers and a little: of a long value nothing is needed but its end.
    begin(&capture, DLT_RAW);
    put_segment(&capture, 99, SYN, "", 0);
    put_text(&capture, 100, get_a);
    capture.snap = 20 + TCP_HEADER + 27;
    put_text(&capture, 120, "*3\r\n$3\r\nSET\r\n$2\r\nbb\r\n$5\r\nhel"); // 28 bytes
    capture.snap = 0;
    put_text(&capture, 148, "lo\r\n");
    capture.snap = 20 + TCP_HEADER + 3;
    put_text(&capture, 152, get_a);
    capture.snap = 20 + 7;
    put_text(&capture, 172, get_a);
    load(&capture, &recording);
    assert_int_equal(recording.requests.count, 2);
    assert_int_equal(recording.gaps, 1);
    assert_int_equal(recording.damaged, 1);
    recording_free(&recording);

    // A file that ends in the middle of a packet.
    begin(&capture, DLT_RAW);
    put_a_get_and_a_set(&capture);
    put_text(&capture, 152, get_a);
    capture.count -= 5;
    load(&capture, &recording);
    assert_int_equal(recording.requests.count, 2);
    assert_int_equal(recording.damaged, 1);
    recording_free(&recording);
}

// Nobody knows how much is behind it.
static void damage_in_the_middle_is_no_end(void **state)
{
    (void)state;
    static struct capture capture;
    struct workload workload;
    struct recording recording;
    struct error err;
    workload_defaults(&workload);
    begin(&capture, DLT_RAW);
    put_a_get_and_a_set(&capture);
    const size_t damaged_at = capture.count;
    put_text(&capture, 152, get_a);
    put_text(&capture, 172, get_a);
    memset(capture.bytes + damaged_at + 8, 0xff, 4); // how much of it was kept
    assert_int_equal(parse(&capture, &workload, &recording, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "r.pcap: what is behind packet 3 cannot be read (invalid"));
    recording_free(&recording);
}

static void memcached_is_understood(void **state)
{
    (void)state;
    static struct capture capture;
    struct recording recording;
    begin(&capture, DLT_EN10MB);
    put_segment(&capture, 99, SYN, "", 0);
    static const char *const texts[] = {"get a\r\n",
                                        "gets bb a\r\nadd bb 0 60 4 noreply\r\nabcd\r\nversion\r",
                                        "\nreplace a 0 0 3\r\nab",
                                        "c\r",
                                        "\ndelete a\r\nget ",
                                        "a\r\ncas a 0 0 7 12345\r\n1234567\r\n",
                                        "quit\r\n"};
    uint32_t at = 100;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; at += (uint32_t)strlen(texts[i++]))
        put_text(&capture, at, texts[i]);
    load(&capture, &recording);
    assert_int_equal(recording.gaps, 0);
    assert_int_equal(recording.left_out, 2);
    assert_string_equal(recording.left_out_names, "version, quit");
    assert_int_equal(recording.requests.count, 7);
    expect(&recording, 0, 0, WORKLOAD_GET, 0);
    expect(&recording, 1, 1, MEMCACHED_MULTIGET, 1);
    expect(&recording, 2, 1, WORKLOAD_SET, 1);
    expect(&recording, 3, 4, WORKLOAD_SET, 0);
    expect(&recording, 4, 4, MEMCACHED_DELETE, 0);
    expect(&recording, 5, 5, WORKLOAD_GET, 0);
    expect(&recording, 6, 5, WORKLOAD_SET, 0);
    assert_int_equal(recording.keys.items[0].value_bytes, 7);
    assert_int_equal(recording.keys.items[1].value_bytes, 4);
    recording_free(&recording);
}

// However long the line, and wherever it is cut; as long as a key is, so long is its like.
static void commands_of_several_keys_ask_for_them_all(void **state)
{
    (void)state;
    enum { KEYS = 200 };
    static struct capture capture;
    struct recording recording;
    struct workload workload;
    struct error err;
    char text[KEYS * 8 + 100], *at = text;
    begin(&capture, DLT_EN10MB);
    put_segment(&capture, 99, SYN, "", 0);
    at += sprintf(at, "get");
    for (unsigned i = 0; i < KEYS; i++)
        at += sprintf(at, " k%u", i % 150);
    at += sprintf(at, "\r\nget k7\r\n*4\r\n$4\r\nMgEt\r\n$2\r\nk3\r\n$6\r\nlonger\r\n$2\r\nk5\r\n"
                      "*2\r\n$4\r\nMGET\r\n$2\r\nk9\r\n");
    for (const char *piece = text; piece < at; piece += 33) {
        const size_t left = (size_t)(at - piece);
        put_segment(&capture, 100 + (uint32_t)(piece - text), ACK, piece, left < 33 ? left : 33);
    }
    workload_defaults(&workload);
    assert_int_equal(parse(&capture, &workload, &recording, &err), 0);
    assert_int_equal(recording.gaps, 0);
    assert_int_equal(recording.left_out, 0);
    assert_int_equal(recording.requests.count, 4);
    assert_int_equal(recording.keys.count, 151);
    assert_int_equal(recording.keys.items[150].key_bytes, 6);
    static const unsigned operations[] = {MEMCACHED_MULTIGET, WORKLOAD_GET, MEMCACHED_MULTIGET,
                                          WORKLOAD_GET};
    static const uint32_t first[] = {0, 7, 3, 9}, counts[] = {KEYS, 1, 3, 1};
    for (unsigned i = 0; i < 4; i++) {
        const struct recorded_transaction *asked = transactions_find(&recording.multigets, i);
        assert_int_equal(recording.requests.items[i].operation, operations[i]);
        assert_int_equal(recording.requests.items[i].key, first[i]);
        assert_int_equal(asked ? asked->count : 1, counts[i]);
        for (unsigned k = 0; i == 0 && k < KEYS; k++)
            assert_int_equal(recording.multigets.commands.items[asked->first + k].key, k % 150);
    }
    const struct recorded_transaction *last = transactions_find(&recording.multigets, 2);
    assert_int_equal(recording.multigets.commands.items[last->first + 1].key, 150);
    assert_int_equal(recording.multigets.commands.items[last->first + 2].key, 5);
    recording_free(&recording);
}

// Of packets what a transaction encloses comes before it is known how it ends; where some of it is
// missing, or the connection begins anew, it has no end.
static void transactions_end_with_what_ends_them(void **state)
{
    (void)state;
    static const char multi[] = "*1\r\n$5\r\nMULTI\r\n", exec[] = "*1\r\n$4\r\nEXEC\r\n",
                      discard[] = "*1\r\n$7\r\nDISCARD\r\n";
    const char *const texts[] = {multi, get_a, set_b, exec,  multi, get_a, discard, get_a,
                                 multi, set_b, NULL,  get_a, exec,  multi, get_a,   get_a};
    static struct capture capture;
    struct recording recording;
    struct workload workload;
    struct error err;
    workload_defaults(&workload);
    workload.protocol = &redis_protocol;
    begin(&capture, DLT_RAW);
    put_segment(&capture, 99, SYN, "", 0);
    uint32_t at = 100;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i])
            put_text(&capture, at, texts[i]);
        at += texts[i] ? (uint32_t)strlen(texts[i]) : 20;
    }
    put_segment(&capture, 4999, SYN, "", 0);
    put_text(&capture, 5000, get_a);
    if (parse(&capture, &workload, &recording, &err) < 0)
        fail_msg("%s", err.text);
    const struct recorded_transactions *all = &recording.transactions;
    assert_int_equal(all->items.count, 1);
    assert_int_equal(all->items.items[0].place, 0);
    assert_int_equal(all->items.items[0].count, 2);
    assert_int_equal(all->commands.items[0].operation, REDIS_GET);
    assert_int_equal(all->commands.items[1].operation, REDIS_SET);
    assert_int_equal(all->commands.items[1].key, 1);
    assert_int_equal(recording.requests.items[0].operation, REDIS_TRANSACTION);
    // The get behind the one that was discarded, that behind the hole, and the last.
    assert_int_equal(recording.requests.count, 4);
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(recording.requests.items[i].operation, REDIS_GET);
    assert_int_equal(recording.gaps, 1);
    assert_int_equal(recording.lost.discarded, 1);
    assert_int_equal(recording.lost.unended, 2);
    assert_int_equal(recording.lost.commands, 1 + 1 + 2);
    assert_int_equal(recording.lost.unbegun, 1);
    recording_free(&recording);
}

// Packets of several queues change places; a clock that was set back makes one burst of what
// follows.
static void a_clock_that_was_set_back_is_no_schedule(void **state)
{
    (void)state;
    static struct capture capture;
    struct recording recording;
    struct workload workload;
    struct error err;
    workload_defaults(&workload);
    begin(&capture, DLT_EN10MB);
    capture.now_us = 10000000;
    put_a_get_and_a_set(&capture);
    capture.now_us -= 900000;
    put_text(&capture, 152, get_a);
    capture.now_us += 2000000;
    put_text(&capture, 172, get_a);
    load(&capture, &recording);
    assert_int_equal(recording.requests.count, 4);
    expect(&recording, 2, 1, WORKLOAD_GET, 0);
    expect(&recording, 3, 1103, WORKLOAD_GET, 0);
    recording_free(&recording);
    capture.now_us -= 1100000;
    put_text(&capture, 192, get_a);
    assert_int_equal(parse(&capture, &workload, &recording, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "r.pcap:6: what stands here was captured more than a second"));
    recording_free(&recording);
}

static void what_is_no_capture_is_refused(void **state)
{
    (void)state;
    static struct capture capture;
    struct recording recording;
    struct workload workload;
    struct error err;
    workload_defaults(&workload);
    begin(&capture, DLT_EN10MB);
    assert_true(pcap_begins(capture.bytes, capture.count));
    assert_true(pcap_begins("\x0a\x0d\x0d\x0a", 4)); // pcapng
    assert_false(pcap_begins("\x0a\x0d\x0d", 3));
    assert_int_equal(parse(&capture, &workload, &recording, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "r.pcap: a recording has two requests at least"));
    recording_free(&recording);
    capture.count = 10;
    assert_int_equal(parse(&capture, &workload, &recording, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "r.pcap: "));
    recording_free(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_found_on_every_link),
        cmocka_unit_test(segments_are_put_in_order),
        cmocka_unit_test(gaps_are_counted),
        cmocka_unit_test(what_was_not_kept_is_told),
        cmocka_unit_test(damage_in_the_middle_is_no_end),
        cmocka_unit_test(memcached_is_understood),
        cmocka_unit_test(commands_of_several_keys_ask_for_them_all),
        cmocka_unit_test(transactions_end_with_what_ends_them),
        cmocka_unit_test(a_clock_that_was_set_back_is_no_schedule),
        cmocka_unit_test(what_is_no_capture_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
