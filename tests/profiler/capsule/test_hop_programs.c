// SPDX-License-Identifier: MIT
//
// The BPF program of a hop, given packets of every shape by the kernel itself (BPF_PROG_TEST_RUN):
// what it takes for a packet, and by what it knows it again, held against the functions that the
// header has for everybody.
// Runs beside others: it sends nothing and asserts no times.
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/array.h"
#include "profiler/capsule/capsule_skeleton.h"
#include "profiler/capsule/hop_rings.h"
#include "profiler/capsule/packet_words.h"
#include "tests/profiler/capsule/capsule_frames.h"
#include "tests/profiler/capsule/capsule_programs.h"

enum { KEY = 4711, HOP = 7, CONTINUE = 0xffffffff };

struct records ARRAY_OF(struct hop_record);

struct scene {
    struct capsule_bpf *programs;
    struct hop_rings rings;
    struct records records;
};

static void take(void *context, const struct hop_slot *slot, const uint64_t *stamps,
                 size_t stamp_count)
{
    struct scene *scene = context;
    (void)stamps;
    assert_int_equal(slot->what, HOP_SLOT_RECORD);
    assert_int_equal(stamp_count, 0);
    assert_int_equal(array_push(&scene->records, slot->record), 0);
}

// link: how many bytes are before the IP packet, as far as the program is told: 0 stands for what
// is not known, where the kernel is asked for each header.
static void begin_with(struct scene *scene, void **link, const char *filter, uint32_t one_in,
                       bool queues)
{
    *scene = (struct scene){.programs = capsule_bpf__open()};
    assert_non_null(scene->programs);
    scene->programs->rodata->key = KEY;
    scene->programs->rodata->hop = HOP;
    scene->programs->rodata->link_bytes = *(const uint32_t *)*link;
    scene->programs->rodata->sample_limit = packet_sample_limit(one_in);
    assert_int_equal(packet_filter_parse(filter, &scene->programs->rodata->filter, NULL), 0);
    scene->programs->rodata->may_follow = queues;
    scene->programs->bss->queues = (uint32_t)queues << HOP;
    assert_int_equal(hop_rings_open(&scene->rings, 1), 0);
    assert_int_equal(
        hop_rings_share(&scene->rings, scene->programs->maps.slots, scene->programs->maps.rings),
        0);
    assert_int_equal(capsule_bpf__load(scene->programs), 0);
}

static void begin(struct scene *scene, void **link, const char *filter, uint32_t one_in)
{
    begin_with(scene, link, filter, one_in, false);
}

static void end(struct scene *scene)
{
    hop_rings_close(&scene->rings);
    capsule_bpf__destroy(scene->programs);
    array_free(&scene->records);
}

// Gives the program a frame; it has to leave it as it is.
static void pass(struct scene *scene, const struct frame *frame)
{
    static uint8_t after[sizeof frame->bytes];
    struct bpf_test_run_opts run = {.sz = sizeof run,
                                    .data_in = frame->bytes,
                                    .data_size_in = (uint32_t)frame->count,
                                    .data_out = after,
                                    .data_size_out = sizeof after};
    assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(scene->programs->progs.hop_look), &run),
                     0);
    assert_int_equal(run.retval, CONTINUE);
    assert_int_equal(run.data_size_out, frame->count);
    assert_memory_equal(after, frame->bytes, frame->count);
    assert_false(hop_rings_drain(&scene->rings, take, scene));
}

static const struct hop_record *last(const struct scene *scene, size_t expected)
{
    assert_int_equal(scene->records.count, expected);
    return &scene->records.items[expected - 1];
}

// What the record of such a packet should say.
static struct packet_head head(unsigned family, unsigned protocol)
{
    struct packet_head out = {.source_port = 40000,
                              .destination_port = 11211,
                              .family = (uint8_t)family,
                              .protocol = (uint8_t)protocol};
    uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
    memcpy(&out.source, family == 6 ? six_source : mapped, 16);
    mapped[15] = 2;
    memcpy(&out.destination, family == 6 ? six_destination : mapped, 16);
    return out;
}

static uint64_t expected_datagram(struct packet_head *of, size_t bytes, size_t there, uint8_t first)
{
    uint64_t prefix[PACKET_PREFIX_WORDS] = {0};
    for (size_t i = 0; i < there && i < sizeof prefix; i++)
        ((uint8_t *)prefix)[i] = (uint8_t)(first + i);
    of->payload_bytes = (uint32_t)bytes;
    return packet_datagram(of, KEY, prefix);
}

// --- tests ---------------------------------------------------------------------------------------

static void datagrams_of_every_length(void **state)
{
    static const size_t lengths[] = {0, 1, 2, 17, 46, 63, 64, 65, 200, 1400};
    struct scene scene;
    struct frame frame;
    begin(&scene, state, "udp port 11211", 1);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (unsigned options = 0; options <= 40; options += 20) {
            struct packet_head of = head(4, PACKET_UDP);
            of.datagram_id = (uint16_t)(100 + i);
            ipv4(&frame, 17, options, of.datagram_id, 0x4000, 8 + lengths[i]);
            udp(&frame, lengths[i]);
            payload(&frame, lengths[i], 3);
            size_t ip_bytes = frame.count - LINK_BYTES;
            payload(&frame, lengths[i] < 18 ? 18 - lengths[i] : 0,
                    99); // what Ethernet fills up with
            pass(&scene, &frame);
            const struct hop_record *record = last(&scene, 3 * i + options / 20 + 1);
            assert_int_equal(record->flow, packet_flow(&of, KEY));
            assert_int_equal(record->datagram, expected_datagram(&of, lengths[i], lengths[i], 3));
            assert_int_equal(record->ip_bytes, ip_bytes);
            assert_int_equal(record->hop, HOP);
            assert_int_equal(record->protocol, PACKET_UDP);
            assert_int_equal(record->flags, 0);
            assert_true(record->time > 0);
        }
    end(&scene);
}

static void streams_are_known_by_their_bytes(void **state)
{
    struct scene scene;
    struct frame frame;
    begin(&scene, state, "tcp and dst port 11211", 1);
    for (unsigned options = 0; options <= 40; options += 4) {
        struct packet_head of = head(4, PACKET_TCP);
        ipv4(&frame, 6, 0, 1, 0x4000, 20 + options + 300);
        tcp(&frame, 0xffffff00, options);
        payload(&frame, 300, 1);
        pass(&scene, &frame);
        const struct hop_record *record = last(&scene, options / 4 + 1);
        assert_int_equal(record->flow, packet_flow(&of, KEY));
        assert_int_equal(record->first, 0xffffff00);
        assert_int_equal(record->end, 0xffffff00 + 300u);
        assert_int_equal(record->datagram, 0);
    }
    ipv4(&frame, 6, 0, 1, 0x4000, 20);
    tcp(&frame, 5, 0);
    pass(&scene, &frame);
    assert_int_equal(scene.programs->bss->counts[HOP].bare, 1);
    assert_int_equal(scene.records.count, 11);
    end(&scene);
}

// Sampled or not: from its number the stream's bytes are counted.
static void where_a_stream_begins_is_recorded(void **state)
{
    struct scene scene;
    struct frame frame;
    begin(&scene, state, "tcp", 1 << 20);
    ipv4(&frame, 6, 0, 1, 0x4000, 20 + 40);
    tcp_flagged(&frame, 0xffffffff, 40, 2);
    pass(&scene, &frame);
    const struct hop_record *record = last(&scene, 1);
    assert_int_equal(record->flags, HOP_OPENS);
    assert_int_equal(record->first, 0);
    assert_int_equal(record->end, 0);
    assert_int_equal(scene.programs->bss->counts[HOP].bare, 0);
    end(&scene);
}

static void ipv6_with_what_may_stand_before_the_ports(void **state)
{
    struct scene scene;
    struct frame frame;
    begin(&scene, state, "ip6 udp port 11211", 1);
    struct packet_head of = head(6, PACKET_UDP);
    ipv6(&frame, 17, 8 + 30);
    udp(&frame, 30);
    payload(&frame, 30, 3);
    pass(&scene, &frame);
    assert_int_equal(last(&scene, 1)->datagram, expected_datagram(&of, 30, 30, 3));
    assert_int_equal(last(&scene, 1)->ip_bytes, 40 + 8 + 30);
    // hop-by-hop options, then options for the destination (16 bytes), then the datagram
    ipv6(&frame, 0, 8 + 16 + 8 + 30);
    add(&frame, "\x3c\0\1\4\0\0\0\0", 8);
    add(&frame, "\x11\1\1\4\0\0\0\0\1\4\0\0\0\0\0\0", 16);
    udp(&frame, 30);
    payload(&frame, 30, 3);
    pass(&scene, &frame);
    assert_int_equal(last(&scene, 2)->datagram, expected_datagram(&of, 30, 30, 3));
    // the first fragment, and another
    ipv6(&frame, 44, 8 + 8 + 40);
    add(&frame, "\x11\0\0\1\0\0\x12\x34", 8);
    udp(&frame, 3000);
    payload(&frame, 40, 3);
    pass(&scene, &frame);
    of.datagram_id = 0x1234;
    assert_int_equal(last(&scene, 3)->datagram, expected_datagram(&of, 3000, 40, 3));
    assert_int_equal(last(&scene, 3)->flags, HOP_FRAGMENT);
    ipv6(&frame, 44, 8 + 40);
    add(&frame, "\x11\0\0\x31\0\0\x12\x34", 8);
    payload(&frame, 40, 3);
    pass(&scene, &frame);
    assert_int_equal(scene.records.count, 3);
    assert_int_equal(scene.programs->bss->counts[HOP].fragments, 1);
    end(&scene);
}

static void of_fragments_the_first_stands_for_all(void **state)
{
    struct scene scene;
    struct frame frame;
    begin(&scene, state, "udp port 11211 and host 10.0.0.2", 1);
    struct packet_head of = head(4, PACKET_UDP);
    of.datagram_id = 77;
    ipv4(&frame, 17, 0, 77, 0x2000, 8 + 1000);
    udp(&frame, 3000);
    payload(&frame, 1000, 3);
    pass(&scene, &frame);
    uint64_t identity = expected_datagram(&of, 3000, 1000, 3);
    assert_int_equal(last(&scene, 1)->datagram, identity);
    assert_int_equal(last(&scene, 1)->flags, HOP_FRAGMENT);
    ipv4(&frame, 17, 0, 77, 0x2000 | 126, 1000);
    payload(&frame, 1000, 9);
    pass(&scene, &frame);
    assert_int_equal(scene.programs->bss->counts[HOP].fragments, 1);
    // Where its parts are one packet again, it is the same.
    ipv4(&frame, 17, 0, 77, 0, 8 + 1900);
    udp(&frame, 3000);
    payload(&frame, 1900, 3);
    pass(&scene, &frame);
    assert_int_equal(last(&scene, 2)->datagram, identity);
    end(&scene);
}

static void what_is_not_asked_for_is_left_out(void **state)
{
    struct scene scene;
    struct frame frame;
    begin(&scene, state, "udp dst port 11212", 1);
    ipv4(&frame, 17, 0, 1, 0, 8 + 20);
    udp(&frame, 20);
    payload(&frame, 20, 1);
    pass(&scene, &frame);
    ipv4(&frame, 1, 0, 1, 0, 40); // ICMP
    payload(&frame, 40, 1);
    pass(&scene, &frame);
    link_layer(&frame, 0x0806); // ARP
    payload(&frame, 46, 1);
    pass(&scene, &frame);
    assert_int_equal(scene.records.count, 0);
    assert_int_equal(
        scene.programs->bss->counts[HOP].unsampled + scene.programs->bss->counts[HOP].bare, 0);
    assert_int_equal(scene.programs->bss->counts[HOP].unreadable, 0);
    end(&scene);
}

struct tunnel {
    unsigned protocol, port; // port 0: not over UDP
    const char *header;
    size_t header_bytes;
    bool has_frame, is_tunnel;
};

static const struct tunnel tunnels[] = {
    {PACKET_UDP, 4789, "\x08\0\0\0\0\0\7", 8, true, true}, // VXLAN
    {PACKET_UDP, 8472, "\x08\0\0\0\0\0\7", 8, true, true},
    {PACKET_UDP, 6081, "\0\0\x65\x58\0\0\7", 8, true, true},              // Geneve
    {PACKET_UDP, 6081, "\2\0\x65\x58\0\0\7\0option\0", 16, true, true},   // with options
    {PACKET_UDP, 6081, "\0\0\x08\0\0\0\7", 8, false, true},               // without a frame
    {47, 0, "\0\0\x08", 4, false, true},                                  // GRE
    {47, 0, "\x20\0\x65\x58\0\0\0\7", 8, true, true},                     // with a key
    {47, 0, "\xb0\0\x08\0\xbe\xef\0\0\0\0\0\7\0\0\0\1", 16, false, true}, // with all
    {4, 0, "", 0, false, true},                                           // IP in IP
    {PACKET_UDP, 4790, "\x08\0\0\0\0\0\7", 8, true, false},
    {PACKET_UDP, 4789, "\0\0\0\0\0\0\7", 8, true, false},       // says no network
    {PACKET_UDP, 6081, "\x40\0\x65\x58\0\0\7", 8, true, false}, // another version
    {47, 0, "\x20\1\x88\x0b\0\0\0\7", 8, false, false},         // PPTP
    {47, 0, "\0\0\x88\x47", 4, false, false},                   // MPLS
    {50, 0, "", 0, false, false},
};

// A packet with this one in it.
static struct frame around(const struct frame *inner, const struct tunnel *tunnel, bool over_ipv6)
{
    struct frame out;
    size_t begin = tunnel->has_frame ? 0 : LINK_BYTES;
    size_t bytes = (tunnel->port ? 8 : 0) + tunnel->header_bytes + inner->count - begin;
    if (over_ipv6)
        ipv6(&out, tunnel->protocol, bytes);
    else
        ipv4(&out, tunnel->protocol, 0, 9, 0, bytes);
    if (tunnel->port) {
        add16(&out, 50000);
        add16(&out, tunnel->port);
        add16(&out, (unsigned)bytes);
        add16(&out, 0);
    }
    add(&out, tunnel->header, tunnel->header_bytes);
    add(&out, inner->bytes + begin, inner->count - begin);
    return out;
}

enum { KINDS = 5, KIND_PAYLOAD = 8 };

// UDP and TCP over either family, and a datagram in a tunnel.
static struct frame of_kind(int kind)
{
    struct frame frame;
    if (kind % 4 < 2)
        ipv4(&frame, kind % 2 ? 6 : 17, 4, 1, 0x4000, (kind % 2 ? 20u : 8u) + KIND_PAYLOAD);
    else
        ipv6(&frame, kind % 2 ? 6 : 17, (kind % 2 ? 20u : 8u) + KIND_PAYLOAD);
    if (kind % 2)
        tcp(&frame, 4711, 0);
    else
        udp(&frame, KIND_PAYLOAD);
    payload(&frame, KIND_PAYLOAD, 1);
    return kind == 4 ? around(&frame, &tunnels[0], false) : frame;
}

// Up to two: the packet is what it is without them, of either family, over UDP and TCP, and in a
// tunnel. Where it is not known where frames begin, none is looked for.
static void tags_in_the_frame_are_passed_over(void **state)
{
    static const unsigned types[] = {0x8100, 0x88a8, 0x8100};
    enum { TAGS = sizeof types / sizeof *types };
    struct scene scene;
    const bool looks = *(const uint32_t *)*state != 0;
    begin(&scene, state, "port 11211", 1);
    for (int kind = 0; kind < KINDS; kind++) {
        struct frame frame = of_kind(kind), before[2];
        pass(&scene, &frame);
        const struct hop_record plain = scene.records.items[scene.records.count - 1];
        for (size_t tag = 0; tag < TAGS; tag++) {
            frame = tagged(&frame, types[tag]);
            if (tag < 2)
                before[tag] = frame;
            pass(&scene, &frame);
        }
        const struct hop_record *last_two = scene.records.items + scene.records.count - 2;
        for (size_t i = 0; looks && i < 2; i++) {
            struct hop_record record = last_two[i];
            record.time = plain.time;
            record.core_after = plain.core_after;
            assert_memory_equal(&record, &plain, sizeof plain);
        }
        // Cut anywhere behind the tags, what is read is in the packet.
        const uint64_t records = scene.records.count;
        const size_t whole = before[1].count - KIND_PAYLOAD;
        for (before[1].count = LINK_BYTES; before[1].count < whole; before[1].count++)
            pass(&scene, &before[1]);
        assert_int_equal(scene.records.count, records);
    }
    assert_int_equal(scene.records.count, looks ? KINDS * TAGS : KINDS);
    if (looks)
        assert_int_equal(scene.programs->bss->counts[HOP].tagged, KINDS);
    end(&scene);
}

static void packets_in_tunnels_are_found(void **state)
{
    struct scene scene;
    struct frame datagram, segment;
    size_t expected = 0;
    struct packet_head of = head(4, PACKET_UDP), stream = head(4, PACKET_TCP);
    begin(&scene, state, "port 11211", 1);
    of.datagram_id = 1;
    ipv4(&datagram, PACKET_UDP, 0, 1, 0, 8 + 100);
    udp(&datagram, 100);
    payload(&datagram, 100, 1);
    ipv4(&segment, PACKET_TCP, 0, 2, 0, 20 + 50);
    tcp(&segment, 1000, 0);
    payload(&segment, 50, 1);
    for (size_t i = 0; i < 2 * sizeof tunnels / sizeof *tunnels; i++) {
        struct frame outer = around(&datagram, &tunnels[i / 2], i % 2);
        pass(&scene, &outer);
        outer = around(&segment, &tunnels[i / 2], i % 2);
        pass(&scene, &outer);
        assert_int_equal(scene.records.count, expected + (tunnels[i / 2].is_tunnel ? 2 : 0));
        if (!tunnels[i / 2].is_tunnel)
            continue;
        const struct hop_record *records = &scene.records.items[expected];
        assert_int_equal(records[0].flow, packet_flow(&of, KEY));
        assert_int_equal(records[0].datagram, expected_datagram(&of, 100, 100, 1));
        assert_int_equal(records[0].ip_bytes, 20 + 8 + 100);
        assert_int_equal(records[1].flow, packet_flow(&stream, KEY));
        assert_int_equal(records[1].first, 1000);
        assert_int_equal(records[1].end, 1050);
        expected += 2;
    }
    // With a tag in the frame within, and cut anywhere: what is read is in the packet.
    struct frame tag = tagged(&datagram, 0x8100), outer = around(&tag, &tunnels[0], false);
    pass(&scene, &outer);
    assert_int_equal(scene.records.count, expected + 1);
    for (outer.count = LINK_BYTES + 20; outer.count < LINK_BYTES + 20 + 8 + 8 + 18 + 20 + 8;
         outer.count++)
        pass(&scene, &outer);
    assert_int_equal(scene.records.count, expected + 1);
    assert_int_equal(scene.programs->bss->counts[HOP].unreadable, 8 + 20 + 8); // in a header
    end(&scene);
}

// Who asks for the tunnel gets the tunnel.
static void the_outermost_packet_that_is_asked_for_counts(void **state)
{
    struct scene scene;
    struct frame datagram;
    begin(&scene, state, "udp", 1);
    ipv4(&datagram, PACKET_UDP, 0, 1, 0, 8 + 100);
    udp(&datagram, 100);
    payload(&datagram, 100, 1);
    struct frame outer = around(&datagram, &tunnels[0], false);
    pass(&scene, &outer);
    assert_int_equal(last(&scene, 1)->ip_bytes, outer.count - LINK_BYTES);
    end(&scene);
}

// Every datagram and segment cut at every byte: no record but of what is whole enough.
static void what_ends_too_early_is_counted(void **state)
{
    struct scene scene;
    struct frame frame;
    begin(&scene, state, "", 1);
    size_t given = 0;
    for (int kind = 0; kind < 4; kind++) {
        if (kind < 2)
            ipv4(&frame, kind ? 6 : 17, 20, 1, 0, kind ? 20 + 8 : 8 + 8);
        else
            ipv6(&frame, kind == 3 ? 6 : 17, kind == 3 ? 20 + 8 : 8 + 8);
        if (kind % 2)
            tcp(&frame, 1, 0);
        else
            udp(&frame, 8);
        size_t headers = frame.count;
        payload(&frame, 8, 1);
        // The kernel gives a program no frame whose IP header is not whole.
        for (size_t bytes = LINK_BYTES + (kind < 2 ? 20 : 40); bytes < headers; bytes++, given++) {
            struct frame cut = frame;
            cut.count = bytes;
            pass(&scene, &cut);
        }
    }
    assert_int_equal(scene.records.count, 0);
    assert_int_equal(scene.programs->bss->counts[HOP].unreadable, given);
    assert_true(given > 80);
    // Lengths that contradict one another.
    ipv4(&frame, 6, 0, 1, 0, 20);
    tcp(&frame, 1, 40);
    pass(&scene, &frame);
    ipv4(&frame, 17, 0, 1, 0, 8 + 8);
    udp(&frame, 0);
    frame.bytes[frame.count - 3] = 7; // shorter than its header
    payload(&frame, 8, 1);
    pass(&scene, &frame);
    assert_int_equal(scene.programs->bss->counts[HOP].unreadable, given + 2);
    end(&scene);
}

// What is sampled is what the header says, the same at every hop.
static void sampling_is_by_what_a_packet_is(void **state)
{
    enum { PACKETS = 800, ONE_IN = 4 };
    struct scene scene;
    struct frame frame;
    size_t expected = 0, covers = 0;
    begin(&scene, state, "", ONE_IN);
    for (unsigned n = 0; n < PACKETS; n++) {
        struct packet_head of = head(4, PACKET_UDP);
        of.datagram_id = (uint16_t)n;
        ipv4(&frame, 17, 0, n, 0, 8 + 100);
        udp(&frame, 100);
        payload(&frame, 100, 3);
        pass(&scene, &frame);
        expected +=
            packet_is_sampled(expected_datagram(&of, 100, 100, 3), packet_sample_limit(ONE_IN));
        assert_int_equal(scene.records.count, expected);
    }
    assert_in_range(expected, PACKETS / 8, PACKETS / 2);
    for (uint32_t n = 0; n < PACKETS; n++) {
        uint32_t at = n * 5000 - 4; // most lie in two or three blocks
        bool any = false, at_end = false;
        ipv4(&frame, 6, 0, n, 0, 20 + 1400);
        tcp(&frame, at, 0);
        payload(&frame, 1400, 3);
        pass(&scene, &frame);
        for (uint32_t byte = 0; byte < 1400; byte++) {
            at_end = packet_is_sampled(packet_block(KEY, at + byte), packet_sample_limit(ONE_IN));
            any |= at_end;
        }
        expected += any;
        covers += any && !at_end;
        assert_int_equal(scene.records.count, expected);
        if (any)
            assert_int_equal(last(&scene, expected)->flags, at_end ? 0 : HOP_ONLY_COVERS);
    }
    assert_true(covers > 0);
    assert_int_equal(scene.programs->bss->counts[HOP].unsampled, 2 * PACKETS - expected);
    end(&scene);
}

static size_t waiting_packets(const struct scene *scene, struct waiting_packet *last)
{
    int map = bpf_map__fd(scene->programs->maps.waiting);
    uint64_t key = 0, next;
    size_t count = 0;
    for (; bpf_map_get_next_key(map, count ? &key : NULL, &next) == 0; count++, key = next)
        assert_int_equal(bpf_map_lookup_elem(map, &next, last), 0);
    return count;
}

// By what a packet is known again behind the queue is what lies there in it, in a tunnel too; and
// what is not recorded waits for nobody.
static void what_waits_is_known_by_its_bytes(void **state)
{
    struct scene scene;
    struct waiting_packet packet;
    // Where it is known where frames begin, with a tag before the IP header too.
    const int kinds = *(const uint32_t *)*state ? 2 * KINDS : KINDS;
    begin_with(&scene, state, "port 11211", 1, true);
    for (int kind = 0; kind < kinds; kind++) {
        struct frame frame = of_kind(kind % KINDS);
        if (kind >= KINDS)
            frame = tagged(&frame, 0x8100);
        const uint8_t *ip = frame.bytes + LINK_BYTES;
        uint64_t ports, addresses;
        pass(&scene, &frame);
        assert_int_equal(scene.programs->bss->counts[HOP].queued, kind + 1);
        assert_int_equal(waiting_packets(&scene, &packet), 1); // the map has room for one
        memcpy(&ports, ip + packet.ports_at, sizeof ports);
        memcpy(&addresses, ip + packet.addresses_at, sizeof addresses);
        assert_int_equal(packet.protocol, kind % KINDS % 2 ? PACKET_TCP : PACKET_UDP);
        if (packet.protocol == PACKET_UDP)
            ports &= UINT64_C(0xffffffffffff); // not the checksum
        assert_int_equal(packet.ports, ports);
        assert_int_equal(packet.addresses, addresses);
        assert_int_equal(packet.hop, HOP);
        assert_int_equal(packet.flow, last(&scene, (size_t)kind + 1)->flow);
        assert_int_equal(packet.entered, last(&scene, (size_t)kind + 1)->time);
    }
    struct frame other = of_kind(0);
    other.bytes[LINK_BYTES + 24 + 2] ^= 0x55; // of the destination's port
    pass(&scene, &other);
    assert_int_equal(scene.programs->bss->counts[HOP].queued, kinds);
    end(&scene);
}

// Nobody reads: what does not fit is counted.
static void a_full_ring_is_counted(void **state)
{
    enum { PACKETS = 200 };
    struct scene scene;
    struct frame frame;
    begin(&scene, state, "", 1);
    ipv4(&frame, 17, 0, 1, 0, 8 + 20);
    udp(&frame, 20);
    payload(&frame, 20, 1);
    for (int n = 0; n < PACKETS; n++) {
        struct bpf_test_run_opts run = {
            .sz = sizeof run, .data_in = frame.bytes, .data_size_in = (uint32_t)frame.count};
        assert_int_equal(
            bpf_prog_test_run_opts(bpf_program__fd(scene.programs->progs.hop_look), &run), 0);
        assert_int_equal(run.retval, CONTINUE);
    }
    const struct hop_counts *counts = &scene.programs->bss->counts[HOP];
    assert_false(hop_rings_drain(&scene.rings, take, &scene));
    assert_int_equal(scene.records.count + counts->dropped, PACKETS);
    assert_true(counts->dropped > 0 && scene.records.count > 0);
    end(&scene);
}

// They are loaded once for each hop. Each way through the headers that the verifier has to follow
// to a program's end would come to 12 to 77 thousand instructions.
static void the_verifier_has_little_to_walk(void **state)
{
    enum { FEW = 8000 };
    struct scene scene;
    begin(&scene, state, "udp port 11211", 1);
    for (int i = 0; i < scene.programs->skeleton->prog_cnt; i++) {
        const struct bpf_program *program = *scene.programs->skeleton->progs[i].prog;
        struct bpf_prog_info info = {0};
        uint32_t bytes = sizeof info;
        assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes), 0);
        printf("%s: %u instructions verified\n", bpf_program__name(program), info.verified_insns);
        assert_in_range(info.verified_insns, 1, FEW);
    }
    end(&scene);
}

#define EITHER(test)                                                                               \
    cmocka_unit_test_prestate(test, &known), cmocka_unit_test_prestate(test, &unknown)

int main(void)
{
    uint32_t known = LINK_BYTES, unknown = 0;
    const struct CMUnitTest tests[] = {
        EITHER(datagrams_of_every_length),
        EITHER(streams_are_known_by_their_bytes),
        EITHER(where_a_stream_begins_is_recorded),
        EITHER(ipv6_with_what_may_stand_before_the_ports),
        EITHER(of_fragments_the_first_stands_for_all),
        EITHER(what_is_not_asked_for_is_left_out),
        EITHER(tags_in_the_frame_are_passed_over),
        EITHER(packets_in_tunnels_are_found),
        EITHER(the_outermost_packet_that_is_asked_for_counts),
        EITHER(what_ends_too_early_is_counted),
        EITHER(sampling_is_by_what_a_packet_is),
        EITHER(what_waits_is_known_by_its_bytes),
        EITHER(a_full_ring_is_counted),
        EITHER(the_verifier_has_little_to_walk),
    };
    if (!programs_can_be_loaded())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
