// SPDX-License-Identifier: MIT
//
// Of a trace of some hundred bytes most of the time goes into memory that is touched for the first
// time. So a decoder takes little of it: what a piece needs, and not what many pieces or long
// tables would.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <malloc.h>

#include "analysis/pt/pt_segments.h"
#include "tests/analysis/pt/pt_round_trip.h"

enum {
    TRACE_BYTES = 300,
    PSB_BYTES = 64, // so that there are many pieces
    // the table of stretches, which grows with the code, is 6 KB of it
    MOST_HEAP_BYTES = 15000,
};

struct seen {
    size_t before, most; // bytes of the heap that were in use
    unsigned pieces;
};

// 0 with a sanitizer, which has a heap of its own.
static size_t heap_bytes(void)
{
    return mallinfo2().uordblks;
}

static int look(void *context, size_t stream, const struct pt_piece *piece, bool contiguous,
                struct error *err)
{
    struct seen *seen = context;
    size_t now = heap_bytes() - seen->before;
    (void)stream;
    (void)piece;
    (void)contiguous;
    (void)err;
    seen->most = now > seen->most ? now : seen->most;
    seen->pieces++;
    return 0;
}

static void a_short_trace_takes_little_memory(void **state)
{
    static struct program program;
    static struct machine machine;
    struct scenario scenario = {.seed = 3, .bytes = TRACE_BYTES, .psb_bytes = PSB_BYTES};
    struct pt_decode_options options = {.threads = 1};
    struct pt_symbols symbols = {.context = &program, .find = program_find};
    struct pt_packets packets;
    struct pt_memory memory;
    struct seen seen = {0};
    struct error err;
    (void)state;
    program_make(&program, 5, 0);
    assert_int_equal(machine_run(&machine, &program, &scenario), 0);
    assert_int_equal(memory_of(&program, &memory, &err), 0);
    struct pt_stream stream = {
        .bytes = {.bytes = writer_offset(&machine.writer), .data = machine.writer.data},
        .packets = &packets,
        .recorder.nominal_ratio = NOMINAL_RATIO};
    assert_int_equal(pt_packets_scan(&stream.bytes, &packets, &err), 0);
    seen.before = heap_bytes();
    assert_int_equal(pt_decode(&memory, &symbols, &stream, 1, &options, look, &seen, &err), 0);
    print_message("%u pieces, %zu bytes of heap\n", seen.pieces, seen.most);
    assert_true(seen.pieces >= 5);
    assert_true(seen.most <= MOST_HEAP_BYTES);
    pt_packets_free(&packets);
    pt_memory_free(&memory);
    machine_fini(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_trace_takes_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
