// SPDX-License-Identifier: MIT
//
// Streams that are so long that several threads scan them: what is found is what one scan of the
// whole finds, however many threads there are, and the index of PSBs is bounded and goes all along.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/pt/pt_trace.h"
#include "tests/analysis/pt/pt_machine.h"

enum { ONE_BYTES = 400 << 10, COPIES = 40, PSB_BYTES = 16 };

static uint8_t *stream;
static uint64_t stream_bytes;

static int make_stream(void **state)
{
    static struct program program;
    static struct machine machine;
    struct scenario scenario = {.seed = 5, .bytes = ONE_BYTES, .psb_bytes = 300};
    (void)state;
    program_make(&program, scenario.seed, 0);
    if (machine_run(&machine, &program, &scenario) < 0)
        return -1;
    uint64_t one = writer_offset(&machine.writer);
    stream_bytes = one * COPIES;
    stream = malloc(stream_bytes);
    for (int i = 0; stream && i < COPIES; i++)
        memcpy(stream + (uint64_t)i * one, machine.writer.data, one);
    machine_fini(&machine);
    return stream ? 0 : -1;
}

static int free_stream(void **state)
{
    (void)state;
    free(stream);
    return 0;
}

static void scan(struct pt_trace *trace, unsigned threads)
{
    struct error err;
    assert_int_equal(pt_trace_init(trace, &err), 0);
    trace->threads = threads;
    for (int i = 0; i < 2; i++) { // a long one, and one that is no part's length
        struct pt_trace_stream *added = pt_trace_add(trace, &err);
        assert_non_null(added);
        added->stream.bytes =
            (struct pt_bytes){.bytes = i ? ONE_BYTES / 2 : stream_bytes, .data = stream};
    }
    assert_int_equal(pt_trace_scan(trace, &err), 0);
}

static void expect_as_whole(const struct pt_trace_stream *found)
{
    struct pt_packets whole;
    struct error err;
    const struct pt_packets *packets = &found->packets;
    assert_int_equal(pt_packets_scan(&found->stream.bytes, &whole, &err), 0);
    assert_int_equal(packets->packets, whole.packets);
    assert_memory_equal(packets->count, whole.count, sizeof whole.count);
    assert_int_equal(packets->skipped, whole.skipped);
    assert_int_equal(packets->flaw_count, whole.flaw_count);
    assert_int_equal(packets->first_tsc, whole.first_tsc);
    assert_int_equal(packets->last_tsc, whole.last_tsc);
    assert_true(found->timed);
    pt_packets_free(&whole);
}

// It is as dense at the stream's end as at its begin.
static void expect_index(const struct pt_trace_stream *found)
{
    const struct pt_syncs *syncs = &found->packets.syncs;
    uint64_t bytes = found->stream.bytes.bytes, before = 0;
    size_t in_last_quarter = 0;
    assert_true(syncs->count <= PT_MOST_SYNCS);
    assert_int_equal(syncs->items[0].offset, 0);
    for (size_t i = 0; i < syncs->count; i++) {
        const struct pt_sync *sync = &syncs->items[i];
        assert_true(i == 0 || sync->offset > before);
        assert_true(sync->offset - before < bytes / 200);
        assert_int_equal(stream[sync->offset], 0x02);
        assert_int_equal(stream[sync->offset + 1], 0x82);
        assert_false(sync->after_break);
        assert_true(sync->tsc);
        in_last_quarter += sync->offset > bytes / 4 * 3;
        before = sync->offset;
    }
    assert_true(in_last_quarter > syncs->count / 6);
}

static void any_number_of_threads_finds_the_same(void **state)
{
    struct pt_trace one, many;
    (void)state;
    scan(&one, 1);
    scan(&many, 5);
    for (int i = 0; i < 2; i++) {
        const struct pt_trace_stream *a = one.streams.items[i], *b = many.streams.items[i];
        expect_as_whole(a);
        expect_as_whole(b);
        expect_index(a);
        assert_int_equal(a->packets.syncs.count, b->packets.syncs.count);
        for (size_t k = 0; k < a->packets.syncs.count; k++)
            assert_int_equal(a->packets.syncs.items[k].offset, b->packets.syncs.items[k].offset);
    }
    pt_trace_free(&one);
    pt_trace_free(&many);
}

// Before every PSB there is a TSC packet now whose payload is as one, so that a search for a PSB
// finds one that begins too early.
static void what_only_looks_like_a_psb_is_none(void **state)
{
    static const uint8_t tsc[] = {0x19, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};
    const uint8_t *from = stream, *end = stream + stream_bytes, *psb;
    uint8_t *longer = malloc(2 * stream_bytes), *to = longer;
    uint64_t psbs = 1;
    struct pt_trace trace;
    (void)state;
    assert_non_null(longer);
    while ((psb = memmem(from + PSB_BYTES, (size_t)(end - from) - PSB_BYTES, stream, PSB_BYTES))) {
        memcpy(to, from, (size_t)(psb - from));
        to += psb - from;
        memcpy(to, tsc, sizeof tsc);
        to += sizeof tsc;
        from = psb;
        psbs++;
    }
    memcpy(to, from, (size_t)(end - from));
    to += end - from;
    free(stream);
    stream = longer;
    stream_bytes = (uint64_t)(to - stream);
    scan(&trace, 2);
    expect_as_whole(trace.streams.items[0]);
    assert_int_equal(trace.streams.items[0]->packets.flaw_count, 0);
    assert_int_equal(trace.streams.items[0]->packets.count[PT_KIND_PSB], psbs);
    pt_trace_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_finds_the_same),
        cmocka_unit_test(what_only_looks_like_a_psb_is_none), // changes the stream
    };
    return cmocka_run_group_tests(tests, make_stream, free_stream);
}
