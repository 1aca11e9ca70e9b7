// SPDX-License-Identifier: MIT
//
// The BPF programs of hops that carry, given packets by the kernel itself (BPF_PROG_TEST_RUN): a
// trailer comes behind the packet, grows and is taken off, and the packet is what it was; and what
// is left alone is counted.
// Runs beside others: it sends nothing and asserts no times.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "profiler/bpf/capsule_trailer.h"
#include "profiler/capsule/capsule_skeleton.h"
#include "profiler/capsule/hop_rings.h"
#include "profiler/capsule/packet_words.h"
#include "tests/profiler/capsule/capsule_frames.h"
#include "tests/profiler/capsule/capsule_programs.h"

enum { KEY = 4711, RUN = 31, HOP = 5, ASKED = 0x7fff, ROOM = 1500, CONTINUE = 0xffffffff };
enum { STAMPS = TRAILER_STAMPS_MAX, TRAILER = sizeof(struct capsule_trailer) + 8 * STAMPS };

struct scene {
    struct capsule_bpf *programs;
    struct hop_rings rings;
    struct carried_record record; // the last
    size_t stamps, records;
};

static void take(void *context, const struct hop_slot *slot, const uint64_t *stamps,
                 size_t stamp_count)
{
    struct scene *scene = context;
    scene->record.packet = slot->record;
    memcpy(scene->record.stamps, stamps, stamp_count * sizeof *stamps);
    scene->stamps = stamp_count;
    scene->records++;
}

static void begin(struct scene *scene, uint32_t one_in, uint16_t asked)
{
    *scene = (struct scene){.programs = capsule_bpf__open()};
    assert_non_null(scene->programs);
    scene->programs->rodata->key = KEY;
    scene->programs->rodata->run = RUN;
    scene->programs->rodata->hop = HOP;
    scene->programs->rodata->asked = asked;
    scene->programs->rodata->stamps_room = STAMPS;
    scene->programs->bss->room_bytes = ROOM;
    scene->programs->rodata->link_bytes = LINK_BYTES;
    scene->programs->rodata->sample_limit = packet_sample_limit(one_in);
    assert_int_equal(packet_filter_parse("port 11211", &scene->programs->rodata->filter, NULL), 0);
    assert_int_equal(hop_rings_open(&scene->rings, 1), 0);
    assert_int_equal(
        hop_rings_share(&scene->rings, scene->programs->maps.slots, scene->programs->maps.rings),
        0);
    assert_int_equal(capsule_bpf__load(scene->programs), 0);
}

static void end(struct scene *scene)
{
    hop_rings_close(&scene->rings);
    capsule_bpf__destroy(scene->programs);
}

// Gives a program a frame, which becomes what the program made of it.
static void give(const struct bpf_program *program, struct frame *frame, uint32_t segment_bytes)
{
    static uint8_t after[sizeof frame->bytes];
    struct __sk_buff context = {.gso_size = segment_bytes, .gso_segs = segment_bytes ? 2 : 0};
    struct bpf_test_run_opts run = {.sz = sizeof run,
                                    .data_in = frame->bytes,
                                    .data_size_in = (uint32_t)frame->count,
                                    .ctx_in = &context,
                                    .ctx_size_in = sizeof context,
                                    .data_out = after,
                                    .data_size_out = sizeof after};
    assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(program), &run), 0);
    assert_int_equal(run.retval, CONTINUE);
    memcpy(frame->bytes, after, run.data_size_out);
    frame->count = run.data_size_out;
}

// The same, and takes what it recorded.
static void pass(struct scene *scene, const struct bpf_program *program, struct frame *frame,
                 uint32_t segment_bytes)
{
    give(program, frame, segment_bytes);
    assert_false(hop_rings_drain(&scene->rings, take, scene));
}

static void pass_begin(struct scene *scene, struct frame *frame)
{
    pass(scene, scene->programs->progs.hop_begin, frame, 0);
}

static void pass_carry(struct scene *scene, struct frame *frame)
{
    pass(scene, scene->programs->progs.hop_carry, frame, 0);
}

static void pass_end(struct scene *scene, struct frame *frame)
{
    pass(scene, scene->programs->progs.hop_end, frame, 0);
}

static bool same(const struct frame *a, const struct frame *b)
{
    return a->count == b->count && memcmp(a->bytes, b->bytes, a->count) == 0;
}

static struct frame datagram(size_t bytes, unsigned id)
{
    struct frame frame;
    ipv4(&frame, 17, 0, id, 0x4000, 8 + bytes);
    udp(&frame, bytes);
    payload(&frame, bytes, (uint8_t)id);
    return frame;
}

static struct frame datagram_of_six(size_t bytes)
{
    struct frame frame;
    ipv6(&frame, 17, 8 + bytes);
    udp(&frame, bytes);
    payload(&frame, bytes, 3);
    return frame;
}

static struct frame segment(uint32_t sequence, size_t bytes)
{
    struct frame frame;
    ipv4(&frame, 6, 20, 1, 0x4000, 20 + 12 + bytes);
    tcp(&frame, sequence, 12);
    payload(&frame, bytes, 3);
    return frame;
}

// --- tests ---------------------------------------------------------------------------------------

// Through one hop that begins, up to twelve that carry, and one that ends.
static void packets_are_what_they_were(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 31, 100, 1201};
    struct scene scene;
    size_t records = 0;
    begin(&scene, 1, ASKED);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (unsigned between = 0; between <= 13; between += between < 2 ? 1 : 11)
            for (int kind = 0; kind < 3; kind++) {
                struct frame before = kind == 0 ? datagram(lengths[i], 7)
                                      : kind == 1
                                          ? datagram_of_six(lengths[i])
                                          : segment((uint32_t)(++records * 2000), lengths[i]);
                struct frame frame = before;
                pass_begin(&scene, &frame);
                assert_int_equal(frame.count, before.count + TRAILER);
                assert_memory_equal(frame.bytes, before.bytes, before.count);
                for (unsigned n = 1; n <= between; n++) {
                    pass_carry(&scene, &frame);
                    assert_int_equal(frame.count, before.count + TRAILER);
                    assert_memory_equal(frame.bytes, before.bytes, before.count);
                }
                size_t so_far = scene.records;
                pass_end(&scene, &frame);
                assert_true(same(&frame, &before));
                assert_int_equal(scene.records, so_far + 1);
                assert_int_equal(scene.stamps, between + 2);
                for (size_t n = 0; n < scene.stamps; n++) {
                    assert_int_equal(trailer_stamp_hop(scene.record.stamps[n]), HOP);
                    assert_true(n == 0 || scene.record.stamps[n] > scene.record.stamps[n - 1]);
                }
                assert_int_equal(scene.record.packet.ip_bytes, before.count - LINK_BYTES);
            }
    const struct hop_counts *counts = &scene.programs->bss->counts[HOP];
    assert_int_equal(counts->begun, scene.records);
    assert_int_equal(counts->ended, scene.records);
    assert_int_equal(counts->damaged + counts->foreign + counts->not_stamped + counts->no_room, 0);
    end(&scene);
}

// An end takes off and counts what it does not believe; and no bit is missed but the balance's.
static void damaged_trailers_are_counted(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, 1, ASKED);
    struct frame before = datagram(100, 7), carried = before;
    pass_begin(&scene, &carried);
    pass_carry(&scene, &carried);
    const struct hop_counts *counts = &scene.programs->bss->counts[HOP];
    for (size_t at = before.count; at < before.count + sizeof(struct capsule_trailer) + 8 * 2;
         at++) {
        struct frame frame = carried;
        bool of_balance = at - before.count == 6 || at - before.count == 7;
        bool of_run = at - before.count < 4 || (at - before.count >= 8 && at - before.count < 16);
        uint64_t damaged = counts->damaged, foreign = counts->foreign;
        size_t records = scene.records;
        frame.bytes[at] ^= 0x55;
        pass_end(&scene, &frame);
        assert_int_equal(scene.records, records + of_balance);
        assert_int_equal(counts->damaged + counts->foreign, damaged + foreign + !of_balance);
        assert_true(counts->foreign == foreign || of_run);
        if (counts->foreign == foreign)
            assert_true(same(&frame, &before));
    }
    // One that was copied to another packet, and one that is cut short.
    struct frame other = datagram_of_six(100);
    memcpy(other.bytes + other.count, carried.bytes + before.count, carried.count - before.count);
    other.count += carried.count - before.count;
    uint64_t damaged = counts->damaged;
    pass_end(&scene, &other);
    assert_int_equal(counts->damaged, damaged + 1);
    struct frame cut = carried;
    cut.count -= 9;
    uint64_t foreign = counts->foreign;
    pass_end(&scene, &cut);
    assert_int_equal(counts->foreign, foreign + 1);
    end(&scene);
}

// Addresses and ports are others at its end: it is the packet that it was, of another flow.
static void what_is_translated_on_the_way_carries(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, 1, ASKED);
    const struct frame befores[] = {datagram(100, 7), segment(100, 1000)};
    for (unsigned i = 0; i < 2; i++) {
        enum { SOURCE = 26, SOURCE_PORT = 34 };
        struct frame translated = befores[i], carried = befores[i];
        translated.bytes[SOURCE]++;
        translated.bytes[SOURCE_PORT]++;
        pass_begin(&scene, &carried);
        carried.bytes[SOURCE]++;
        pass_carry(&scene, &carried);
        carried.bytes[SOURCE_PORT]++;
        pass_end(&scene, &carried);
        assert_int_equal(scene.records, i + 1);
        assert_int_equal(scene.stamps, 3);
        assert_true(same(&carried, &translated));
    }
    assert_int_equal(scene.programs->bss->counts[HOP].damaged, 0);
    end(&scene);
}

static void foreign_bytes_are_left_alone(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, 1, ASKED);
    struct frame before = datagram(100, 7);
    payload(&before, 40, 1);
    struct frame frame = before;
    pass_begin(&scene, &frame);
    pass_carry(&scene, &frame);
    pass_end(&scene, &frame);
    assert_true(same(&frame, &before));
    assert_int_equal(scene.programs->bss->counts[HOP].foreign, 3);
    // What Ethernet filled up is no content: a trailer takes its place.
    before = datagram(10, 7);
    size_t bytes = before.count;
    memset(before.bytes + bytes, 0, 60 - bytes);
    frame = before;
    frame.count = 60;
    pass_begin(&scene, &frame);
    assert_int_equal(frame.count, bytes + TRAILER);
    pass_end(&scene, &frame);
    assert_true(same(&frame, &before));
    assert_int_equal(scene.programs->bss->counts[HOP].foreign, 3);
    assert_int_equal(scene.records, 1);
    end(&scene);
}

// Up to two tags in the frame: it carries as it does without. With more it is left alone.
static void what_has_tags_in_the_frame_carries(void **state)
{
    enum { TAGS = 3 };
    struct scene scene;
    (void)state;
    begin(&scene, 1, ASKED);
    struct frame frame = datagram(100, 1);
    for (size_t tags = 1; tags <= TAGS; tags++) {
        frame = tagged(&frame, tags % 2 ? 0x8100 : 0x88a8);
        struct frame before = frame;
        pass_begin(&scene, &frame);
        assert_int_equal(frame.count, before.count + (tags < TAGS ? TRAILER : 0));
        pass_carry(&scene, &frame);
        pass_end(&scene, &frame);
        assert_true(same(&frame, &before));
    }
    assert_int_equal(scene.programs->bss->counts[HOP].tagged, 3);
    assert_int_equal(scene.programs->bss->counts[HOP].begun, TAGS - 1);
    assert_int_equal(scene.programs->bss->counts[HOP].stamped, TAGS - 1);
    assert_int_equal(scene.programs->bss->counts[HOP].ended, TAGS - 1);
    assert_int_equal(scene.records, TAGS - 1);
    end(&scene);
}

static void what_may_not_grow_is_left_alone(void **state)
{
    (void)state;
    struct scene scene;
    enum { MOST = ROOM - TRAILER };
    begin(&scene, 1, ASKED);
    const struct hop_counts *counts = &scene.programs->bss->counts[HOP];
    struct frame before = datagram(MOST - 28, 7), frame = before;
    pass_begin(&scene, &frame);
    assert_int_equal(counts->begun, 1);
    before = frame = datagram(MOST - 28 + 1, 8);
    pass_begin(&scene, &frame);
    assert_int_equal(counts->no_room, 1);
    assert_true(same(&frame, &before));
    // Several datagrams, or segments, in one.
    before = frame = segment(1000, 1200);
    pass(&scene, scene.programs->progs.hop_begin, &frame, 600);
    assert_int_equal(counts->bundled, 1);
    assert_true(same(&frame, &before));
    // A fragment.
    ipv4(&before, 17, 0, 9, 0x2000, 8 + 200);
    udp(&before, 3000);
    payload(&before, 200, 3);
    frame = before;
    pass_begin(&scene, &frame);
    assert_int_equal(counts->fragments, 1);
    assert_true(same(&frame, &before));
    assert_int_equal(counts->begun, 1);
    end(&scene);
}

// A retransmission has no trailer: where they do not get through, the stream does.
static void what_is_sent_again_is_left_alone(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, 1, ASKED);
    const struct hop_counts *counts = &scene.programs->bss->counts[HOP];
    uint32_t at = UINT32_MAX - 250; // the numbers begin again at 0 on the way
    for (int n = 0; n < 6; n++, at += 100) {
        struct frame first = segment(at, 100), again = first, older = segment(at - 100, 100);
        pass_begin(&scene, &first);
        assert_int_equal(counts->begun, n + 1);
        pass_begin(&scene, &again);
        pass_begin(&scene, &older);
        assert_int_equal(counts->begun, n + 1);
        assert_int_equal(counts->sent_again, 2 * (n + 1));
        struct frame untouched = segment(at, 100);
        assert_true(same(&again, &untouched));
    }
    end(&scene);
}

// Hops that a trailer does not ask for leave it as it is.
static void the_packet_says_who_stamps_it(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene, 1, ASKED & ~(1 << HOP));
    struct frame frame = datagram(100, 7);
    pass_begin(&scene, &frame);
    struct frame carried = frame;
    pass_carry(&scene, &frame);
    assert_true(same(&frame, &carried));
    assert_int_equal(scene.programs->bss->counts[HOP].unsampled, 1);
    end(&scene);
}

// The decision is made once: the others take what carries a trailer, and leave what does not.
static void the_first_hop_samples(void **state)
{
    (void)state;
    enum { PACKETS = 400, ONE_IN = 4 };
    struct scene scene;
    begin(&scene, ONE_IN, ASKED);
    const struct hop_counts *counts = &scene.programs->bss->counts[HOP];
    for (unsigned n = 0; n < PACKETS; n++) {
        struct frame before = datagram(100, n), frame = before;
        uint64_t begun = counts->begun;
        pass_begin(&scene, &frame);
        assert_int_equal(frame.count > before.count, counts->begun - begun);
        pass_carry(&scene, &frame);
        pass_end(&scene, &frame);
        assert_true(same(&frame, &before));
    }
    assert_in_range(counts->begun, PACKETS / 8, PACKETS / 2);
    assert_int_equal(counts->ended, counts->begun);
    assert_int_equal(counts->stamped, counts->begun);
    assert_int_equal(scene.records, counts->begun);
    end(&scene);
}

// Trailers are taken off whether there is room for what they say or not.
static void a_full_ring_is_counted(void **state)
{
    (void)state;
    enum { PACKETS = 200 };
    struct scene scene;
    begin(&scene, 1, ASKED);
    for (unsigned n = 0; n < PACKETS; n++) {
        struct frame frame = datagram(20, n);
        const struct frame before = frame;
        give(scene.programs->progs.hop_begin, &frame, 0);
        assert_int_equal(frame.count, before.count + TRAILER);
        give(scene.programs->progs.hop_end, &frame, 0);
        assert_true(same(&frame, &before));
    }
    const struct hop_counts *counts = &scene.programs->bss->counts[HOP];
    assert_false(hop_rings_drain(&scene.rings, take, &scene));
    assert_int_equal(counts->begun, PACKETS);
    assert_int_equal(counts->ended, PACKETS);
    assert_int_equal(scene.records + counts->dropped, PACKETS);
    assert_true(counts->dropped > 0 && scene.records > 0);
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_are_what_they_were),
        cmocka_unit_test(damaged_trailers_are_counted),
        cmocka_unit_test(what_is_translated_on_the_way_carries),
        cmocka_unit_test(foreign_bytes_are_left_alone),
        cmocka_unit_test(what_has_tags_in_the_frame_carries),
        cmocka_unit_test(what_may_not_grow_is_left_alone),
        cmocka_unit_test(what_is_sent_again_is_left_alone),
        cmocka_unit_test(the_packet_says_who_stamps_it),
        cmocka_unit_test(the_first_hop_samples),
        cmocka_unit_test(a_full_ring_is_counted),
    };
    if (!programs_can_be_loaded())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
