// SPDX-License-Identifier: MIT
//
// Which code a walk takes for that of the running process, where the times of the switches between
// processes do not agree with the trace's own: each way, that of libipt and the fast one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/pt/walk/pt_walk.h"
#include "tests/analysis/pt/pt_writer.h"

enum { TRACE_BYTES = 4096, TRACE_BEGINS = 1000, LAST_BYTES = 16, TURNS = 50 };
#define KERNEL    0xffffffff81000000
#define PROCESS   0x400000 // of process n, whose space is n: n times that
#define PROCESSES 3

// The kernel goes to each of the `count` processes in turn, and they go back to it.
static size_t write_trace(uint8_t trace[TRACE_BYTES], const int *processes, size_t count)
{
    struct pt_config config;
    pt_config_init(&config);
    config.begin = trace;
    config.end = trace + TRACE_BYTES;
    struct writer writer = {
        .encoder = pt_alloc_encoder(&config), .now = TRACE_BEGINS, .ratio = 1, .random = {1}};
    assert_non_null(writer.encoder);
    write_psb(&writer, KERNEL);
    for (size_t i = 0; i < count * TURNS; i++) {
        write_address(&writer, ppt_tip, (uint64_t)processes[i / TURNS] * PROCESS);
        write_address(&writer, ppt_tip, KERNEL);
    }
    for (int i = 0; i < LAST_BYTES; i++)
        write_packet(&writer, (struct pt_packet){.type = ppt_pad});
    assert_false(writer.failed);
    size_t bytes = writer_offset(&writer);
    pt_free_encoder(writer.encoder);
    return bytes;
}

// Returns how many instructions ran; the address of the first error in *lost, 0: there is none.
static uint64_t walk(const struct pt_space_changes *changes, const int *processes, size_t count,
                     bool careful, uint64_t *lost)
{
    static const uint8_t jump[] = {0xff, 0xe0}; // jmp *rax
    static uint8_t trace[TRACE_BYTES];
    struct pt_packets packets;
    struct pt_memory memory = {0};
    struct pt_piece piece = {0};
    struct error err;
    struct pt_stream stream = {
        .bytes = {.bytes = write_trace(trace, processes, count), .data = trace},
        .packets = &packets,
        .changes = changes};
    assert_int_equal(pt_memory_add_bytes(&memory, jump, sizeof jump, KERNEL, PT_SPACE_ALL, &err),
                     0);
    for (uint32_t i = 1; i <= PROCESSES; i++)
        assert_int_equal(
            pt_memory_add_bytes(&memory, jump, sizeof jump, (uint64_t)i * PROCESS, i, &err), 0);
    assert_int_equal(pt_packets_scan(&stream.bytes, &packets, &err), 0);
    struct pt_walker *walker = pt_walker_alloc(&memory, NULL, careful, &err);
    assert_non_null(walker);
    assert_int_equal(pt_walk(walker, &stream, 0, packets.syncs.count, &piece, &err), 0);
    uint64_t instructions = piece.counts.instructions;
    *lost = piece.errors.count ? piece.errors.items[0].ip : 0;
    if (!careful && !*lost)
        assert_int_equal(piece.counts.followed_bytes, stream.bytes.bytes);
    pt_piece_free(&piece);
    pt_walker_free(walker);
    pt_packets_free(&packets);
    pt_memory_free(&memory);
    return instructions;
}

static void code_is_of_a_process_that_ran_at_about_that_time(void **state)
{
    (void)state;
    enum { LATER = TRACE_BEGINS + 1000 };
    static const struct {
        struct pt_space_change changes[3];
        int processes[3];
    } cases[] = {
        {{{0, 1}, {LATER, 2}, {LATER + 1, 3}}, {1, 2, 3}}, // the switches are noted late,
        {{{0, 1}, {1, 2}, {2, 3}}, {1, 2, 3}},             // or early;
        {{{0, 1}, {1, 2}, {LATER, 3}}, {3, 1, 2}},         // both
        {{{0, 0}, {LATER, 0}, {LATER + 1, 3}}, {3, 3, 3}}, // a thread of the kernel's in between
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pt_space_change items[3];
        memcpy(items, cases[i].changes, sizeof items);
        const struct pt_space_changes changes = {.items = items, .count = 3};
        for (int careful = 0; careful < 2; careful++) {
            uint64_t lost, ran = walk(&changes, cases[i].processes, 3, careful, &lost);
            if (lost)
                fail_msg("case %zu, careful %d: lost at %llx", i, careful,
                         (unsigned long long)lost);
            assert_int_equal(ran, 2 * 3 * TURNS);
        }
    }
}

static void code_that_no_process_had_is_lost(void **state)
{
    (void)state;
    static const int processes[] = {1, PROCESSES + 1};
    struct pt_space_change items[] = {{0, 1}, {TRACE_BEGINS + 1000, 2}};
    const struct pt_space_changes changes = {.items = items, .count = 2};
    for (int careful = 0; careful < 2; careful++) {
        uint64_t lost, ran = walk(&changes, processes, 2, careful, &lost);
        assert_int_equal(lost, (PROCESSES + 1) * PROCESS);
        assert_int_equal(ran, 2 * TURNS + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_of_a_process_that_ran_at_about_that_time),
        cmocka_unit_test(code_that_no_process_had_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
