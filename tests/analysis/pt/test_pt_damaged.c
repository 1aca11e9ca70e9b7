// SPDX-License-Identifier: MIT
//
// What is decoded of a damaged trace, too, depends neither on the way nor on the number of threads
// or how much they take at once: real captures, each damaged in some hundred ways, or, where a
// sanitizer makes that slow, in as many as are asked for: test_pt_damaged WAYS.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/pt/pt_segments.h"
#include "tests/analysis/pt/pt_captures.h"
#include "tests/analysis/pt/pt_damage.h"

enum { LARGE_BYTES = 100000, LARGE_SEEDS = 4, THIN_SYNCS = 2 };
static size_t seeds = 50;

struct found {
    struct pt_walk_counts counts;
    uint64_t errors, losses;
};

static int add_piece(void *context, size_t stream, const struct pt_piece *piece, bool contiguous,
                     struct error *err)
{
    struct found *found = (struct found *)context + stream;
    (void)err;
    pt_walk_counts_add(&found->counts, &piece->counts);
    found->errors += piece->errors.count;
    (void)contiguous;
    for (size_t i = 0; i < piece->flows.count; i++)
        found->losses += piece->flows.items[i].kind == PT_FLOW_LOST;
    return 0;
}

struct traces {
    const struct pt_trace *trace;
    struct pt_stream *streams;
    size_t count;
};

static struct found decode(const struct traces *traces, unsigned threads, uint64_t piece_bytes,
                           bool careful)
{
    struct pt_decode_options how = {
        .threads = threads, .piece_bytes = piece_bytes, .careful = careful};
    struct found each[CAPTURE_STREAMS] = {0}, all = {0};
    struct error err;
    assert_int_equal(pt_decode(&traces->trace->memory, traces->trace->symbols, traces->streams,
                               traces->count, &how, add_piece, each, &err),
                     0);
    for (size_t i = 0; i < traces->count; i++) {
        pt_walk_counts_add(&all.counts, &each[i].counts);
        all.errors += each[i].errors;
        all.losses += each[i].losses;
    }
    return all;
}

static bool found_equal(const struct found *a, const struct found *b)
{
    const struct pt_walk_counts *x = &a->counts, *y = &b->counts;
    return x->instructions == y->instructions && x->calls == y->calls && x->returns == y->returns &&
           x->interrupts == y->interrupts && x->syscalls == y->syscalls &&
           x->overflows == y->overflows && a->errors == b->errors && a->losses == b->losses;
}

static void compare_ways(const struct traces *traces, const char *name, uint64_t seed)
{
    static const struct {
        unsigned threads;
        uint64_t piece_bytes;
        bool careful;
    } ways[] = {{1, 0, true}, {2, 0, false}, {2, 1, false}, {1, UINT32_MAX, false}};
    struct found first = decode(traces, 1, 0, false);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct found other = decode(traces, ways[i].threads, ways[i].piece_bytes, ways[i].careful);
        if (!found_equal(&first, &other))
            fail_msg(
                "%s, seed %llu: %llu instructions, %llu errors; %llu, %llu by %u threads%s in "
                "pieces of %llu bytes",
                name, (unsigned long long)seed, (unsigned long long)first.counts.instructions,
                (unsigned long long)first.errors, (unsigned long long)other.counts.instructions,
                (unsigned long long)other.errors, ways[i].threads,
                ways[i].careful ? ", carefully," : "", (unsigned long long)ways[i].piece_bytes);
    }
}

// Damages one of the streams.
static void damage_capture(struct traces *traces, const char *name, size_t most_syncs)
{
    for (size_t seed = 1; seed <= seeds; seed++) {
        struct pt_stream *stream = &traces->streams[seed % traces->count], whole = *stream;
        struct damage damage = damage_make(whole.bytes.data, (size_t)whole.bytes.bytes, seed);
        struct pt_packets packets;
        struct error err;
        assert_non_null(damage.data);
        stream->bytes = (struct pt_bytes){.bytes = damage.bytes, .data = damage.data};
        assert_int_equal(pt_packets_scan_thinly(&stream->bytes, most_syncs, &packets, &err), 0);
        stream->packets = &packets;
        compare_ways(traces, name, seed);
        pt_packets_free(&packets);
        free(damage.data);
        *stream = whole;
        if (whole.bytes.bytes > LARGE_BYTES && seed == LARGE_SEEDS)
            break;
    }
}

static void damage_one(void *most_syncs, const struct capture *capture,
                       const struct pt_trace *trace, struct pt_stream *streams, size_t count)
{
    struct traces traces = {.trace = trace, .streams = streams, .count = count};
    damage_capture(&traces, capture->name, *(const size_t *)most_syncs);
}

static void damage_captures(size_t most_syncs)
{
    int used = captures_each(damage_one, &most_syncs);
    if (used == 0)
        skip();
    assert_true(used > 0);
}

static void damaged_traces_count_alike_in_all_ways(void **state)
{
    (void)state;
    damage_captures(SIZE_MAX);
}

// As of a long trace.
static void so_they_do_where_the_index_lacks_psbs(void **state)
{
    (void)state;
    damage_captures(THIN_SYNCS);
}

int main(int count, char **arguments)
{
    if (count > 1)
        seeds = strtoul(arguments[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_traces_count_alike_in_all_ways),
        cmocka_unit_test(so_they_do_where_the_index_lacks_psbs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
