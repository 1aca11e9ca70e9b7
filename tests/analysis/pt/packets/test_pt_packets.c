// SPDX-License-Identifier: MIT
//
// The packet scan against libipt's own packet decoder, on scenarios, on scenarios with bytes
// knocked out, cut in all places, and scattered over memory; and the glance against the scan.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/pt/packets/pt_windows.h"
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

static void expect_equal(const struct pt_packets *a, const struct pt_packets *b)
{
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->skipped, b->skipped);
    assert_int_equal(a->packets, b->packets);
    assert_memory_equal(a->count, b->count, sizeof a->count);
    assert_int_equal(a->first_tsc, b->first_tsc);
    assert_int_equal(a->last_tsc, b->last_tsc);
    assert_int_equal(a->stray_headers, b->stray_headers);
    assert_int_equal(a->flaw_count, b->flaw_count);
    assert_int_equal(a->flaws.count, b->flaws.count);
    for (size_t i = 0; i < a->flaws.count; i++)
        assert_int_equal(a->flaws.items[i].offset, b->flaws.items[i].offset);
    assert_int_equal(a->syncs.count, b->syncs.count);
    for (size_t i = 0; i < a->syncs.count; i++) {
        const struct pt_sync *one = &a->syncs.items[i], *other = &b->syncs.items[i];
        assert_int_equal(one->offset, other->offset);
        assert_int_equal(one->tsc, other->tsc);
        assert_int_equal(one->ip, other->ip);
        assert_int_equal(one->has_tsc, other->has_tsc);
        assert_int_equal(one->stray, other->stray);
        assert_int_equal(one->after_break, other->after_break);
        assert_int_equal(one->went_back, other->went_back);
        assert_int_equal(one->hands_over, other->hands_over);
    }
}

enum { MOST_PARTS = 8 };

// Scans, or glances, in so many parts; returns what joining them does.
static int look_in_parts(const struct pt_bytes *source, const uint64_t *cuts, size_t count,
                         bool glance, struct pt_packets *out)
{
    struct pt_packets_part parts[MOST_PARTS];
    struct error err;
    for (size_t i = 0; i < count; i++) {
        parts[i].glance = glance;
        parts[i].from = i ? cuts[i - 1] : 0;
        parts[i].to = i + 1 < count ? cuts[i] : UINT64_MAX;
        assert_int_equal(pt_packets_scan_part(source, PT_MOST_SYNCS, &parts[i], &err), 0);
    }
    int joined = pt_packets_join(parts, count, out, &err);
    for (size_t i = 0; i < count; i++)
        pt_packets_free(&parts[i].found);
    return joined;
}

static int scan_in_parts(const struct pt_bytes *source, const uint64_t *cuts, size_t count,
                         struct pt_packets *out)
{
    return look_in_parts(source, cuts, count, false, out);
}

static int compare_offsets(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// A stream of which bytes are missing at no, one or two places.
static struct pt_bytes make_broken(struct machine *machine, uint64_t seed,
                                   struct random_source *random, uint64_t breaks[2])
{
    make(machine, seed, 6000);
    struct pt_bytes source = {.bytes = writer_offset(&machine->writer),
                              .data = machine->writer.data,
                              .breaks = breaks,
                              .break_count = random_below(random, 3)};
    for (size_t i = 0; i < 2; i++)
        breaks[i] = 1 + random_below(random, (uint32_t)source.bytes - 1);
    qsort(breaks, source.break_count, sizeof *breaks, compare_offsets);
    return source;
}

// Where bytes were damaged, a PSB may be part of what seems another packet: then they do not join.
static void parts_join_to_what_the_whole_is(void **state)
{
    (void)state;
    int joined_damaged = 0;
    static struct machine machine;
    struct random_source random = {17};
    struct error err;
    for (uint64_t seed = 1; seed < 300; seed++) {
        uint64_t cuts[MOST_PARTS], breaks[2];
        const struct pt_bytes source = make_broken(&machine, seed, &random, breaks);
        const uint32_t bytes = (uint32_t)source.bytes;
        struct pt_packets whole, joined;
        unsigned damaged = (unsigned)random_below(&random, 12);
        damaged = damaged < 6 ? 0 : damaged;
        for (unsigned i = 0; i < damaged; i++)
            machine.writer.data[random_below(&random, bytes)] = (uint8_t)random_next(&random);
        size_t count = 2 + random_below(&random, MOST_PARTS - 1);
        for (size_t i = 0; i < MOST_PARTS; i++)
            cuts[i] = 1 + random_below(&random, bytes + 100);
        qsort(cuts, count - 1, sizeof *cuts, compare_offsets);
        assert_int_equal(pt_packets_scan(&source, &whole, &err), 0);
        bool fits = scan_in_parts(&source, cuts, count, &joined) == 1;
        assert_true(fits || damaged);
        if (fits)
            expect_equal(&joined, &whole);
        joined_damaged += fits && damaged;
        pt_packets_free(&whole);
        if (fits)
            pt_packets_free(&joined);
        machine_fini(&machine);
    }
    assert_true(joined_damaged > 50);
}

// Glances; false where that is not enough.
static bool glance_in_parts(const struct pt_bytes *source, const uint64_t *cuts, size_t count,
                            struct pt_packets *out)
{
    if (look_in_parts(source, cuts, count, true, out) == 0)
        return false;
    if (pt_packets_glanced(out))
        return true;
    pt_packets_free(out);
    return false;
}

// What was glanced at, with the packets near windows of all times counted.
static void expect_all_counted(struct pt_packets *glanced, const struct pt_bytes *source,
                               const struct pt_packets *whole)
{
    struct pt_window always = {0, UINT64_MAX};
    struct pt_windows windows = {.items = &always, .count = 1};
    struct error err;
    assert_true(glanced->glanced);
    assert_int_equal(glanced->packets, 0);
    assert_int_equal(pt_windows_refine(&windows, source, glanced, &err), 0);
    assert_true(glanced->scanned <= source->bytes - glanced->skipped);
    assert_true(glanced->scanned + glanced->skipped >= source->bytes - whole->skipped);
    expect_equal(glanced, whole);
}

static void a_glance_finds_what_a_scan_finds(void **state)
{
    (void)state;
    int broken = 0, damaged = 0;
    static struct machine machine;
    struct random_source random = {23};
    struct error err;
    for (uint64_t seed = 1; seed < 300; seed++) {
        uint64_t cuts[MOST_PARTS], breaks[2];
        const struct pt_bytes source = make_broken(&machine, seed, &random, breaks);
        const uint32_t bytes = (uint32_t)source.bytes;
        struct pt_packets whole, glanced;
        bool damage = random_below(&random, 2);
        for (unsigned i = 0; damage && i < 8; i++)
            machine.writer.data[random_below(&random, bytes)] = (uint8_t)random_next(&random);
        size_t count = 1 + random_below(&random, MOST_PARTS);
        for (size_t i = 0; i < MOST_PARTS; i++)
            cuts[i] = 1 + random_below(&random, bytes);
        qsort(cuts, count - 1, sizeof *cuts, compare_offsets);
        assert_int_equal(pt_packets_scan(&source, &whole, &err), 0);
        bool enough = glance_in_parts(&source, cuts, count, &glanced);
        assert_true(enough || damage || source.break_count);
        if (enough && whole.flaw_count == 0) {
            expect_all_counted(&glanced, &source, &whole);
            broken += source.break_count > 0;
            damaged += damage;
        }
        if (enough)
            pt_packets_free(&glanced);
        pt_packets_free(&whole);
        machine_fini(&machine);
    }
    assert_true(broken > 20 && damaged > 5);
}

// Longer than what is looked at at once, so that PSBs are cut.
static void a_glance_at_a_long_stream_finds_the_same(void **state)
{
    (void)state;
    static struct machine machine;
    make(&machine, 7, 5 << 20);
    const uint8_t *data = machine.writer.data;
    uint64_t bytes = writer_offset(&machine.writer);
    struct error err;
    for (uint64_t skipped = 0; skipped < 40; skipped++) {
        struct scattered scattered = {.data = data + skipped};
        struct pt_bytes whole = {.bytes = bytes - skipped, .data = data + skipped};
        struct pt_bytes pieces = {
            .bytes = bytes - skipped, .view = scattered_view, .context = &scattered};
        struct pt_packets scanned, glanced;
        assert_int_equal(pt_packets_scan(&whole, &scanned, &err), 0);
        assert_true(glance_in_parts(skipped % 2 ? &whole : &pieces, NULL, 1, &glanced));
        assert_int_equal(glanced.count[PT_KIND_PSB], scanned.count[PT_KIND_PSB]);
        memcpy(glanced.count, scanned.count, sizeof glanced.count);
        glanced.packets = scanned.packets;
        expect_equal(&glanced, &scanned);
        pt_packets_free(&scanned);
        pt_packets_free(&glanced);
    }
    machine_fini(&machine);
}

// Two headers with times; the packets between them end in these bytes.
static bool glance_behind(const uint8_t *before, size_t bytes, bool timed, struct pt_packets *out)
{
    static const uint8_t header[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02,
                                     0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x19, 0x05,
                                     0,    0,    0,    0,    0,    0,    0x02, 0x23};
    enum { PSB_BYTES = 16 };
    uint8_t data[100];
    memcpy(data, header, sizeof header);
    memcpy(data + sizeof header, before, bytes);
    memcpy(data + sizeof header + bytes, header, sizeof header);
    if (!timed) // the second TSC packet becomes padding
        memset(data + sizeof header + bytes + PSB_BYTES, 0, 8);
    struct pt_bytes source = {.bytes = 2 * sizeof header + bytes, .data = data};
    return glance_in_parts(&source, NULL, 1, out);
}

static void a_glance_is_not_deceived(void **state)
{
    static const uint8_t psb_like[] = {0x19, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x82,
                                       0x19, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};
    static const uint8_t psb[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                  0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};
    static const uint8_t branches[] = {0x82, 0x82, 0x02, 0x83};
    struct pt_packets found;
    (void)state;
    assert_true(glance_behind(psb_like, sizeof psb_like, true, &found));
    assert_int_equal(found.count[PT_KIND_PSB], 2);
    assert_int_equal(found.syncs.items[1].offset, 26 + sizeof psb_like);
    pt_packets_free(&found);
    assert_true(glance_behind(branches, 2, true, &found));
    assert_int_equal(found.syncs.items[1].offset, 26 + 2);
    pt_packets_free(&found);
    assert_false(glance_behind(psb, sizeof psb, true, &found)); // no header behind the first
    assert_false(glance_behind(branches, 2, false, &found));
}

// A TSC packet of which the payload begins as a PSB does, right before one.
static void parts_that_begin_at_no_psb_do_not_join(void **state)
{
    enum { PSB_BYTES = 16, BEFORE = PSB_BYTES + 2, TSC_BYTES = 8 };
    uint8_t data[BEFORE + TSC_BYTES + 1 + PSB_BYTES + 2];
    struct pt_bytes source = {.bytes = sizeof data, .data = data};
    struct pt_packets joined;
    const uint64_t inside = BEFORE + 1, behind = BEFORE + TSC_BYTES + 1;
    (void)state;
    for (size_t i = 0; i < PSB_BYTES; i++)
        data[i] = i % 2 ? 0x82 : 0x02;
    data[PSB_BYTES] = 0x02; // PSBEND
    data[PSB_BYTES + 1] = 0x23;
    data[BEFORE] = 0x19; // TSC
    for (size_t i = BEFORE + 1; i < sizeof data - 2; i++)
        data[i] = (i - BEFORE) % 2 ? 0x02 : 0x82;
    data[sizeof data - 2] = 0x02;
    data[sizeof data - 1] = 0x23;
    assert_int_equal(scan_in_parts(&source, &inside, 2, &joined), 0);
    assert_int_equal(scan_in_parts(&source, &behind, 2, &joined), 1);
    assert_int_equal(joined.count[PT_KIND_PSB], 2);
    assert_int_equal(joined.syncs.count, 2);
    assert_int_equal(joined.flaw_count, 0);
    pt_packets_free(&joined);
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
        cmocka_unit_test(parts_join_to_what_the_whole_is),
        cmocka_unit_test(a_glance_finds_what_a_scan_finds),
        cmocka_unit_test(a_glance_at_a_long_stream_finds_the_same),
        cmocka_unit_test(a_glance_is_not_deceived),
        cmocka_unit_test(parts_that_begin_at_no_psb_do_not_join),
        cmocka_unit_test(what_is_no_packet_is_told_and_skipped),
        cmocka_unit_test(flaws_beyond_a_number_are_only_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
