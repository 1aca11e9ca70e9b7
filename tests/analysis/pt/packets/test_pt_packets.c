// SPDX-License-Identifier: MIT
//
// The packet scan against libipt's own packet decoder, on scenarios, on scenarios with bytes
// knocked out, cut in all places, and scattered over memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/pt/packets/pt_packets.h"
#include "tests/analysis/pt/pt_machine.h"

struct reference {
    uint64_t packets, psbs, errors;
};

// Counts with libipt; goes on at the next PSB after an unknown packet, as the scan does.
static struct reference count_with_libipt(const uint8_t *data, size_t bytes)
{
    struct reference out = {0};
    struct pt_config config;
    pt_config_init(&config);
    config.begin = (uint8_t *)(uintptr_t)data;
    config.end = config.begin + bytes;
    struct pt_packet_decoder *decoder = pt_pkt_alloc_decoder(&config);
    int status = pt_pkt_sync_forward(decoder);
    while (status >= 0) {
        struct pt_packet packet;
        status = pt_pkt_next(decoder, &packet, sizeof packet);
        if (status >= 0) {
            out.packets++;
            out.psbs += packet.type == ppt_psb;
        } else if (status != -pte_eos) {
            out.errors++;
            status = pt_pkt_sync_forward(decoder);
        }
    }
    pt_pkt_free_decoder(decoder);
    return out;
}

static void make(struct machine *machine, uint64_t seed, size_t bytes)
{
    static struct program program;
    struct scenario scenario = {.seed = seed, .bytes = bytes, .psb_bytes = 300, .faults = true};
    program_make(&program, seed, 0);
    assert_int_equal(machine_run(machine, &program, &scenario), 0);
}

static void expect_same(const uint8_t *data, size_t bytes)
{
    struct pt_bytes source = {.bytes = bytes, .data = data};
    struct pt_packets found;
    struct error err;
    struct reference truth = count_with_libipt(data, bytes);
    assert_int_equal(pt_packets_scan(&source, &found, &err), 0);
    assert_int_equal(found.packets, truth.packets);
    assert_int_equal(found.syncs.count, truth.psbs);
    for (size_t i = 0; i < found.syncs.count; i++)
        assert_true(found.syncs.items[i].has_tsc || i + 1 == found.syncs.count);
    pt_packets_free(&found);
}

static void counts_are_those_of_libipt(void **state)
{
    (void)state;
    static struct machine machine;
    for (uint64_t seed = 1; seed < 40; seed++) {
        make(&machine, seed, 4000);
        uint64_t bytes = writer_offset(&machine.writer);
        for (size_t cut = 0; cut < 64; cut++)
            expect_same(machine.writer.data + cut * 7, bytes - cut * 31);
        machine_fini(&machine);
    }
}

struct scattered {
    const uint8_t *data;
    uint64_t asked;
};

static const uint8_t *scattered_view(void *context, uint64_t offset, size_t bytes, uint8_t *scratch)
{
    struct scattered *scattered = context;
    scattered->asked++;
    memcpy(scratch, scattered->data + offset, bytes);
    return scratch;
}

static void scattered_and_long_streams_scan_the_same(void **state)
{
    (void)state;
    static struct machine machine;
    make(&machine, 7, 5 << 20);
    struct pt_bytes whole = {.bytes = writer_offset(&machine.writer), .data = machine.writer.data};
    struct scattered scattered = {.data = whole.data};
    struct pt_bytes pieces = {.bytes = whole.bytes, .view = scattered_view, .context = &scattered};
    struct pt_packets a, b;
    struct error err;
    assert_int_equal(pt_packets_scan(&whole, &a, &err), 0);
    assert_int_equal(pt_packets_scan(&pieces, &b, &err), 0);
    assert_true(scattered.asked > 4);
    assert_int_equal(a.packets, b.packets);
    assert_int_equal(a.syncs.count, b.syncs.count);
    assert_memory_equal(a.count, b.count, sizeof a.count);
    assert_int_equal(a.flaws.count, 0);
    assert_int_equal(a.packets, count_with_libipt(whole.data, whole.bytes).packets);
    assert_int_equal(a.skipped, 0);
    assert_true(pt_packets_find(&a, a.syncs.items[100].tsc) >= 100);
    assert_int_equal(pt_packets_find(&a, 0), 0);
    pt_packets_free(&a);
    pt_packets_free(&b);
    machine_fini(&machine);
}

static void a_break_starts_over_at_the_next_psb(void **state)
{
    (void)state;
    static struct machine machine;
    make(&machine, 11, 6000);
    uint64_t bytes = writer_offset(&machine.writer), at = 3001;
    struct pt_bytes broken = {
        .bytes = bytes, .data = machine.writer.data, .breaks = &at, .break_count = 1};
    struct pt_bytes left = {.bytes = at, .data = machine.writer.data};
    struct pt_bytes right = {.bytes = bytes - at, .data = machine.writer.data + at};
    struct pt_packets all, first, second;
    struct error err;
    assert_int_equal(pt_packets_scan(&broken, &all, &err), 0);
    assert_int_equal(pt_packets_scan(&left, &first, &err), 0);
    assert_int_equal(pt_packets_scan(&right, &second, &err), 0);
    assert_int_equal(all.packets, first.packets + second.packets);
    assert_true(second.syncs.count > 0);
    assert_int_equal(all.syncs.count, first.syncs.count + second.syncs.count);
    for (size_t i = 0; i < all.syncs.count; i++)
        assert_int_equal(all.syncs.items[i].after_break, i == first.syncs.count);
    pt_packets_free(&all);
    pt_packets_free(&first);
    pt_packets_free(&second);
    machine_fini(&machine);
}

static void what_is_no_packet_is_told_and_skipped(void **state)
{
    (void)state;
    static struct machine machine;
    make(&machine, 3, 3000);
    struct pt_bytes source = {.bytes = writer_offset(&machine.writer), .data = machine.writer.data};
    struct pt_packets before, after;
    struct error err;
    assert_int_equal(pt_packets_scan(&source, &before, &err), 0);
    machine.writer.data[before.syncs.items[1].offset - 1] = 0x05; // no packet has this opcode
    machine.writer.data[before.syncs.items[1].offset - 2] = 0x05;
    assert_int_equal(pt_packets_scan(&source, &after, &err), 0);
    assert_true(after.flaws.count >= 1);
    assert_true(after.flaws.items[0].offset < before.syncs.items[1].offset);
    assert_string_equal(after.flaws.items[0].what, "unknown packet");
    assert_int_equal(after.syncs.count, before.syncs.count);
    assert_true(after.skipped > 0);
    pt_packets_free(&before);
    pt_packets_free(&after);
    machine_fini(&machine);
}

static void flaws_beyond_a_number_are_only_counted(void **state)
{
    enum { PIECES = 3 * PT_FLAWS_KEPT, PSB_BYTES = 16, PIECE_BYTES = PSB_BYTES + 1 };
    static uint8_t data[PIECES * PIECE_BYTES];
    (void)state;
    for (size_t i = 0; i < PIECES; i++) {
        for (size_t k = 0; k < PSB_BYTES; k++)
            data[i * PIECE_BYTES + k] = k % 2 ? 0x82 : 0x02;
        data[i * PIECE_BYTES + PSB_BYTES] = 0x05; // no packet has this opcode
    }
    struct pt_bytes source = {.bytes = sizeof data, .data = data};
    struct pt_packets packets;
    struct error err;
    assert_int_equal(pt_packets_scan(&source, &packets, &err), 0);
    assert_int_equal(packets.flaw_count, PIECES);
    assert_int_equal(packets.flaws.count, PT_FLAWS_KEPT);
    pt_packets_free(&packets);
}

static void a_run_of_branches_ends_where_another_packet_begins(void **state)
{
    struct random_source random = {1};
    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint8_t bytes[8];
        uint64_t word;
        unsigned run = 0;
        for (size_t b = 0; b < sizeof bytes; b++) // three in four are even
            bytes[b] = (uint8_t)(random_next(&random) & ~(random_below(&random, 4) ? 1u : 0u));
        bytes[random_below(&random, 8)] = (uint8_t)random_below(&random, 6);
        while (run < 8 && pt_is_short_tnt(bytes[run]))
            run++;
        memcpy(&word, bytes, sizeof word);
        assert_int_equal(pt_short_tnt_run(word), run);
    }
    assert_int_equal(pt_short_tnt_run(0xfefefefefe040404), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_libipt),
        cmocka_unit_test(a_run_of_branches_ends_where_another_packet_begins),
        cmocka_unit_test(scattered_and_long_streams_scan_the_same),
        cmocka_unit_test(a_break_starts_over_at_the_next_psb),
        cmocka_unit_test(what_is_no_packet_is_told_and_skipped),
        cmocka_unit_test(flaws_beyond_a_number_are_only_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
