// SPDX-License-Identifier: MIT
//
// Streams that are so long that several threads scan them: what is found is what one scan of the
// whole finds, however many threads there are, and the index of PSBs is bounded and goes all along.
// Where only windows are wanted it is the same index. Short ones are scanned by one thread.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>

#include "analysis/pt/pt_trace.h"
#include "tests/analysis/pt/pt_machine.h"

enum { ONE_BYTES = 400 << 10, COPIES = 40, PSB_BYTES = 16 };

static unsigned threads_begun;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    threads_begun++;
    return next(thread, attributes, run, argument);
}

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

static void scan_for(struct pt_trace *trace, unsigned threads, bool windows_only)
{
    struct error err;
    assert_int_equal(pt_trace_init(trace, &err), 0);
    trace->threads = threads;
    trace->windows_only = windows_only;
    for (int i = 0; i < 2; i++) { // a long one, and one that is no part's length
        struct pt_trace_stream *added = pt_trace_add(trace, &err);
        assert_non_null(added);
        added->stream.bytes =
            (struct pt_bytes){.bytes = i ? ONE_BYTES / 2 : stream_bytes, .data = stream};
    }
    assert_int_equal(pt_trace_scan(trace, &err), 0);
}

static void scan(struct pt_trace *trace, unsigned threads)
{
    scan_for(trace, threads, false);
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

static void expect_same_index(const struct pt_trace_stream *a, const struct pt_trace_stream *b)
{
    const struct pt_syncs *one = &a->packets.syncs, *other = &b->packets.syncs;
    assert_int_equal(one->count, other->count);
    for (size_t i = 0; i < one->count; i++) {
        assert_int_equal(one->items[i].offset, other->items[i].offset);
        assert_int_equal(one->items[i].tsc, other->items[i].tsc);
        assert_int_equal(one->items[i].ip, other->items[i].ip);
        assert_int_equal(one->items[i].hands_over, other->items[i].hands_over);
    }
    assert_int_equal(a->packets.first_tsc, b->packets.first_tsc);
    assert_int_equal(a->packets.last_tsc, b->packets.last_tsc);
    assert_int_equal(a->packets.stray_headers, b->packets.stray_headers);
    assert_int_equal(a->packets.count[PT_KIND_PSB], b->packets.count[PT_KIND_PSB]);
    assert_true(a->timed && b->timed);
}

// The long stream is then the copy of a file that had no time in one of its headers.
static void windows_need_no_more_than_a_glance(void **state)
{
    struct pt_trace all, windows;
    (void)state;
    scan(&all, 2);
    scan_for(&windows, 2, true);
    for (int i = 0; i < 2; i++) {
        expect_same_index(all.streams.items[i], windows.streams.items[i]);
        assert_true(windows.streams.items[i]->packets.glanced);
        assert_int_equal(windows.streams.items[i]->packets.scanned, 0);
    }
    uint64_t one = stream_bytes / COPIES, psb = (uint64_t)(COPIES / 2) * one;
    uint8_t tsc[8];
    memcpy(tsc, stream + psb + PSB_BYTES, sizeof tsc);
    assert_int_equal(tsc[0], 0x19);
    memset(stream + psb + PSB_BYTES, 0, sizeof tsc); // padding
    pt_trace_free(&all);
    pt_trace_free(&windows);
    scan(&all, 2);
    scan_for(&windows, 2, true);
    for (int i = 0; i < 2; i++)
        expect_same_index(all.streams.items[i], windows.streams.items[i]);
    assert_false(windows.streams.items[0]->packets.glanced);
    assert_true(windows.streams.items[1]->packets.glanced);
    expect_as_whole(windows.streams.items[0]);
    memcpy(stream + psb + PSB_BYTES, tsc, sizeof tsc);
    pt_trace_free(&all);
    pt_trace_free(&windows);
}

// The first PSB in [from, end); NULL: none. Searched for in short pieces: a thread sanitizer looks
// at all the bytes that a search is given, however soon it finds something.
static const uint8_t *find_psb(const uint8_t *from, const uint8_t *end)
{
    enum { NEAR = 4096 };
    const uint8_t *found = NULL;
    for (; !found && end - from >= PSB_BYTES; from += NEAR) {
        size_t left = (size_t)(end - from), most = NEAR + PSB_BYTES - 1;
        found = memmem(from, left < most ? left : most, stream, PSB_BYTES);
        if (left <= NEAR)
            break;
    }
    return found;
}

// Before every PSB there is a TSC packet now whose payload is as one, so that a search for a PSB
// finds one that begins too early.
static void what_only_looks_like_a_psb_is_none(void **state)
{
    static const uint8_t tsc[] = {0x19, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};
    const uint8_t *from = stream, *end = stream + stream_bytes, *psb;
    uint8_t *longer = malloc(2 * stream_bytes), *to = longer;
    uint64_t psbs = 1;
    struct pt_trace trace, windows;
    (void)state;
    assert_non_null(longer);
    while ((psb = find_psb(from + PSB_BYTES, end))) {
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
    scan_for(&windows, 2, true);
    assert_true(windows.streams.items[0]->packets.glanced);
    assert_int_equal(windows.streams.items[0]->packets.count[PT_KIND_PSB], psbs);
    pt_trace_free(&trace);
    pt_trace_free(&windows);
}

// A thread takes longer to begin than they take.
static void short_streams_are_scanned_by_one_thread(void **state)
{
    struct pt_trace trace;
    struct error err;
    (void)state;
    assert_int_equal(pt_trace_init(&trace, &err), 0);
    for (int i = 0; i < 2; i++) {
        struct pt_trace_stream *added = pt_trace_add(&trace, &err);
        assert_non_null(added);
        added->stream.bytes = (struct pt_bytes){.bytes = 4 << 10, .data = stream};
    }
    threads_begun = 0;
    assert_int_equal(pt_trace_scan(&trace, &err), 0);
    assert_int_equal(threads_begun, 0);
    pt_trace_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_finds_the_same),
        cmocka_unit_test(windows_need_no_more_than_a_glance),
        cmocka_unit_test(short_streams_are_scanned_by_one_thread),
        cmocka_unit_test(what_only_looks_like_a_psb_is_none), // changes the stream
    };
    return cmocka_run_group_tests(tests, make_stream, free_stream);
}
