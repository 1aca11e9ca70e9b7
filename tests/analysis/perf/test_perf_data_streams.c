// SPDX-License-Identifier: MIT
//
// The reader of perf.data: streams of compressed records, and streams of AUX data with their clock.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <cmocka.h>

#include "analysis/perf/perf_data.h"
#include "analysis/perf/perf_data_events.h"
#include "tests/analysis/perf/perf_data_maker.h"

static void parse_well(struct maker *maker, struct perf_data *data)
{
    struct error err;
    make_file_end(maker);
    struct perf_input input = {"made", maker->bytes, maker->count};
    if (perf_data_parse(&input, 1, NULL, data, &err) < 0)
        fail_msg("%s", err.text);
}

// --- compression -------------------------------------------------------------------------------

// Cuts one zstd stream of the records into COMPRESSED and COMPRESSED2 records of `piece` bytes.
static struct maker compressed_file(const struct maker *records, size_t piece)
{
    struct maker maker = make_file();
    size_t bound = ZSTD_compressBound(records->count);
    uint8_t *squeezed = malloc(bound);
    size_t bytes = ZSTD_compress(squeezed, bound, records->bytes, records->count, 1);
    assert_false(ZSTD_isError(bytes));
    for (size_t at = 0; at < bytes; at += piece) {
        size_t now = bytes - at < piece ? bytes - at : piece;
        bool second = at / piece % 2 != 0;
        make_record(&maker, second ? PERF_COMPRESSED2 : PERF_COMPRESSED, 0);
        if (second)
            make_u64(&maker, now);
        make_bytes(&maker, squeezed + at, now);
        if (second)
            make_bytes(&maker, "\0\0\0\0\0\0\0", (8 - now % 8) % 8);
        make_record_end(&maker);
    }
    free(squeezed);
    return maker;
}

static struct maker many_records(uint64_t count)
{
    struct maker records = {0};
    for (uint64_t i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "task %d", (int)(i * 7919 % 1000));
        make_comm(&records, (uint32_t)i, name, i + 1, false);
    }
    return records;
}

static void compressed_records_may_be_cut_anywhere(void **state)
{
    (void)state;
    struct maker records = many_records(20000); // more than the reader's buffer
    const size_t pieces[] = {1, 13, 1000, 60000};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct maker maker = compressed_file(&records, pieces[i]);
        struct perf_data data;
        parse_well(&maker, &data);
        assert_int_equal(data.complaint_count, 0);
        assert_int_equal(data.decompressed_bytes, records.count);
        assert_int_equal(data.counts[PERF_COMM], 20000);
        assert_int_equal(data.events.count, 20000);
        for (uint32_t k = 0; k < 20000; k++) {
            struct perf_comm comm;
            char name[16];
            snprintf(name, sizeof name, "task %d", (int)((uint64_t)k * 7919 % 1000));
            perf_event_comm(&data.events.items[k], &comm);
            assert_int_equal(comm.pid, k);
            assert_string_equal(comm.name, name);
        }
        perf_data_free(&data);
        free(maker.bytes);
    }
    free(records.bytes);
}

// COMPRESSED2 records of 64 KiB and more as perf 6.16 writes them: their length wraps, there is no
// padding, and the headers of all pieces but the first stand between them.
static void compressed_records_too_long_for_their_length_are_read(void **state)
{
    (void)state;
    enum { PIECE = 65519 };
    struct maker records = {0};
    srand(3);
    for (uint32_t i = 0; i < 6000; i++) { // names that compress badly
        char name[41] = "";
        for (int k = 0; k < 40; k++)
            name[k] = (char)('!' + rand() % 90);
        make_comm(&records, i, name, i + 1, false);
    }
    size_t bound = ZSTD_compressBound(records.count);
    uint8_t *squeezed = malloc(bound);
    size_t bytes = ZSTD_compress(squeezed, bound, records.bytes, records.count, 1);
    assert_true(!ZSTD_isError(bytes) && bytes > 2 * PIECE);
    struct maker maker = make_file();
    for (int several = 1; several >= 0; several--) { // two pieces in one record, then the rest
        size_t pieces = several ? 2 : (bytes - 2 * PIECE + PIECE - 1) / PIECE;
        size_t from = several ? 0 : 2 * PIECE;
        for (size_t i = 0; i < pieces; i++) {
            size_t now = bytes - from < PIECE ? bytes - from : PIECE;
            size_t header = maker.count;
            make_record(&maker, PERF_COMPRESSED2, 0);
            make_u64(&maker, now);
            make_bytes(&maker, squeezed + from, now);
            from += now;
            uint16_t size = (uint16_t)(several && i ? 16 + now : (16 + now + 7) & ~(size_t)7);
            memcpy(maker.bytes + header + 6, &size, sizeof size);
            if (several && i) // the first header speaks for both
                make_set_u64(&maker, MAKER_RECORDS_AT + 8, 2 * PIECE + 16);
            else if (!several)
                make_bytes(&maker, "\0\0\0\0\0\0\0", size ? (8 - now % 8) % 8 : 0);
        }
    }
    free(squeezed);
    make_comm(&maker, 6000, "plain", 10000, false);
    struct perf_data data;
    parse_well(&maker, &data);
    for (size_t i = 0; i < data.complaints.count; i++)
        print_message("%s\n", data.complaints.items[i].text);
    assert_int_equal(data.complaint_count, 0);
    assert_int_equal(data.decompressed_bytes, records.count);
    assert_int_equal(data.events.count, 6001);
    perf_data_free(&data);
    free(maker.bytes);
    free(records.bytes);
}

static void damaged_compression_is_said(void **state)
{
    (void)state;
    struct maker records = many_records(2000);
    struct maker maker = compressed_file(&records, 500);
    memset(maker.bytes + MAKER_RECORDS_AT + 1200, 0xff, 300);
    make_comm(&maker, 9, "plain", 1, false);
    struct perf_data data;
    parse_well(&maker, &data);
    assert_true(data.complaint_count > 0);
    assert_true(data.complaints.items[0].offset >= MAKER_RECORDS_AT);
    assert_true(data.events.count >= 1 && data.events.count < 2001);
    perf_data_free(&data);

    // A limit on what they unfold to.
    struct maker sound = compressed_file(&records, 500);
    make_file_end(&sound);
    struct perf_input input = {"made", sound.bytes, sound.count};
    struct perf_limits limits = {
        .events = 1000000, .copy_bytes = 1 << 30, .decompressed_bytes = 5000};
    struct error err;
    assert_int_equal(perf_data_parse(&input, 1, &limits, &data, &err), 0);
    assert_true(data.complaint_count > 0);
    assert_true(data.events.count < 2000);
    perf_data_free(&data);
    free(sound.bytes);
    free(maker.bytes);
    free(records.bytes);
}

// --- AUX data ----------------------------------------------------------------------------------

static void a_stream_is_its_extents_without_padding(void **state)
{
    (void)state;
    struct maker maker = make_file();
    make_pt_info(&maker, false);
    make_auxtrace(&maker, 3, 3, 0, "abcdefghij\0\0\0\0\0\0", 16); // 10 bytes and padding
    make_auxtrace(&maker, 1, 1, 0, "XXXXXXXX", 8);
    make_auxtrace(&maker, 3, 3, 10, "klmnopqr", 8);
    make_auxtrace(&maker, 3, 3, 100, "stuvwxyz", 8); // 82 bytes are missing before it
    make_auxtrace(&maker, 5, PERF_NO_CPU, 0, "per-thread!!!!!!", 16);
    struct perf_data data;
    parse_well(&maker, &data);
    assert_int_equal(data.complaint_count, 0);
    assert_int_equal(data.streams.count, 3);
    assert_int_equal(data.streams.items[0].ring, 1);
    assert_int_equal(data.streams.items[2].thread, 99);
    assert_int_equal(data.streams.items[2].cpu, PERF_NO_CPU);
    const struct perf_aux_stream *stream = &data.streams.items[1];
    assert_int_equal(stream->cpu, 3);
    assert_int_equal(stream->thread, PERF_NO_PID);
    assert_int_equal(stream->bytes, 26);
    assert_int_equal(data.aux_bytes, 26 + 8 + 16);
    assert_true(stream->extents.items[1].continues);
    assert_false(stream->extents.items[2].continues);
    uint8_t scratch[26];
    for (uint64_t from = 0; from <= 26; from++)
        for (uint64_t to = from; to <= 26; to++)
            assert_memory_equal(perf_aux_view(stream, from, (size_t)(to - from), scratch),
                                "abcdefghijklmnopqrstuvwxyz" + from, (size_t)(to - from));
    // Within one extent nothing is copied.
    assert_ptr_equal(perf_aux_view(stream, 2, 8, scratch), stream->extents.items[0].data + 2);
    assert_ptr_equal(perf_aux_extent_at(stream, 10), &stream->extents.items[1]);

    assert_true(data.intel_pt.present && data.intel_pt.has_tsc && data.intel_pt.has_mtc);
    assert_false(data.intel_pt.has_cyc);
    assert_int_equal(data.intel_pt.mtc_period, 3);
    assert_int_equal(data.intel_pt.max_non_turbo_ratio, 24);
    assert_int_equal(data.intel_pt.config, 0x300e601);
    perf_data_free(&data);
    free(maker.bytes);
}

static void repeated_snapshots_are_noticed(void **state)
{
    (void)state;
    enum { RING = 4096 };
    uint8_t ring[RING * 2];
    for (size_t i = 0; i < sizeof ring; i++)
        ring[i] = (uint8_t)(i * 31 + i / 251 + 1);
    for (size_t at = 100; at + 64 < sizeof ring; at += 700)
        for (size_t i = 0; i < 16; i++)
            ring[at + i] = i % 2 ? 0x82 : 0x02;
    struct maker maker = make_file();
    make_pt_info(&maker, true);
    make_auxtrace(&maker, 0, 0, 0, ring, RING);
    make_auxtrace(&maker, 0, 0, 0, ring + 1000, RING); // all but its last 1000 bytes are known
    make_auxtrace(&maker, 0, 0, 0, ring + 1000, 16);   // too short to judge
    struct perf_data data;
    parse_well(&maker, &data);
    const struct perf_aux_stream *stream = &data.streams.items[0];
    assert_int_equal(stream->extents.items[0].overlap, 0);
    assert_int_equal(stream->extents.items[1].overlap, RING - 1000);
    assert_int_equal(stream->extents.items[2].overlap, 0);
    assert_false(stream->extents.items[1].continues);
    perf_data_free(&data);
    free(maker.bytes);
}

static void the_clock_is_converted_both_ways(void **state)
{
    (void)state;
    struct maker maker = make_file();
    make_pt_info(&maker, false);
    struct perf_data data;
    parse_well(&maker, &data);
    assert_true(data.time.valid);
    for (uint64_t tsc = 1; tsc < (uint64_t)1 << 50; tsc = tsc * 3 + 1) {
        uint64_t ns = perf_time_of_tsc(&data.time, tsc);
        uint64_t back = perf_tsc_of_time(&data.time, ns);
        assert_true(back <= tsc && tsc - back <= 2); // 1 ns is 1.2 ticks here
        // As perf computes it.
        uint64_t quotient = tsc >> 31, rest = tsc & (((uint64_t)1 << 31) - 1);
        assert_int_equal(ns, 1000 + quotient * 1789569706 + (rest * 1789569706 >> 31));
    }
    perf_data_free(&data);

    make_record(&maker, PERF_TIME_CONV, 0); // a conversion by 0 is none
    make_u64(&maker, 64);
    make_u64(&maker, 0);
    make_u64(&maker, 5);
    make_record_end(&maker);
    parse_well(&maker, &data);
    assert_true(data.time.valid); // AUXTRACE_INFO's
    assert_int_equal(data.time.zero, 1000);
    perf_data_free(&data);
    free(maker.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compressed_records_may_be_cut_anywhere),
        cmocka_unit_test(compressed_records_too_long_for_their_length_are_read),
        cmocka_unit_test(damaged_compression_is_said),
        cmocka_unit_test(a_stream_is_its_extents_without_padding),
        cmocka_unit_test(repeated_snapshots_are_noticed),
        cmocka_unit_test(the_clock_is_converted_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
