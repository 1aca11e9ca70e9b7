// SPDX-License-Identifier: MIT
//
// What is decoded does not depend on where the stream is cut: pieces of any size, in both ways and
// by several threads, come in order and count what one plain walk of libipt over all of it counts.
// On real captures, and where a piece ends between the packet that switches tracing on and what was
// executed before the next PSB.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/pt/pt_segments.h"
#include "tests/analysis/pt/pt_captures.h"

static const uint64_t piece_sizes[] = {1, 64, 1000, 2048, 5000, 30000, UINT32_MAX};
enum {
    SIZES = sizeof piece_sizes / sizeof *piece_sizes,
    MOST_THREADS = 3,
    CODE = 0x400000,
    CODE_BYTES = 4096
};

struct sums {
    uint64_t instructions, errors, losses, calls, returns, out_of_order, followed;
    size_t end_sync; // of the last piece
};

static int add_piece(void *context, size_t stream, const struct pt_piece *piece, bool contiguous,
                     struct error *err)
{
    struct sums *sums = (struct sums *)context + stream;
    (void)err;
    sums->out_of_order += piece->first_sync < sums->end_sync;
    sums->out_of_order += contiguous && piece->first_sync != sums->end_sync;
    sums->end_sync = piece->end_sync;
    sums->instructions += piece->counts.instructions;
    sums->calls += piece->counts.calls;
    sums->returns += piece->counts.returns;
    sums->errors += piece->errors.count;
    sums->followed += piece->counts.followed_bytes;
    for (size_t i = 0; i < piece->flows.count; i++)
        sums->losses += piece->flows.items[i].kind == PT_FLOW_LOST;
    return 0;
}

static struct sums decode_pieces(const struct pt_memory *memory, const struct pt_stream *streams,
                                 size_t count, uint64_t piece_bytes, unsigned threads, bool careful)
{
    struct pt_decode_options how = {
        .threads = threads, .piece_bytes = piece_bytes, .careful = careful};
    struct sums each[CAPTURE_STREAMS] = {0}, all = {0};
    struct error err;
    assert_int_equal(pt_decode(memory, NULL, streams, count, &how, add_piece, each, &err), 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(each[i].out_of_order, 0);
        assert_int_equal(each[i].end_sync, streams[i].packets->syncs.count);
        all.instructions += each[i].instructions;
        all.errors += each[i].errors;
        all.followed += each[i].followed;
        all.losses += each[i].losses;
        all.calls += each[i].calls;
        all.returns += each[i].returns;
    }
    return all;
}

// All sizes, both ways, against libipt's own walk over the whole streams.
static void compare_with_walk(const struct pt_memory *memory, const struct pt_stream *streams,
                              size_t count, uint32_t space, const char *name)
{
    struct pt_image *image;
    struct plain_walk walk = {0};
    struct error err;
    struct pt_code_view *code = pt_code_view_alloc(memory, &err);
    assert_non_null(code);
    assert_int_equal(pt_code_view_image(code, space, &image, &err), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(plain_walk(image, &streams[i].recorder, streams[i].bytes.data,
                                    streams[i].bytes.bytes, &walk),
                         0);
    pt_code_view_free(code);
    assert_true(walk.instructions > 0);
    struct sums whole = decode_pieces(memory, streams, count, UINT32_MAX, 1, true);
    for (size_t i = 0; i < 2 * SIZES * MOST_THREADS; i++) {
        uint64_t piece_bytes = piece_sizes[i / 2 % SIZES];
        unsigned threads = 1 + (unsigned)i / (2 * SIZES);
        struct sums cut = decode_pieces(memory, streams, count, piece_bytes, threads, i % 2);
        if (cut.instructions != walk.instructions || cut.errors != walk.errors ||
            cut.calls != whole.calls || cut.returns != whole.returns)
            fail_msg("%s in pieces of %llu bytes by %u threads%s: %llu instructions, %llu errors; "
                     "libipt walks %llu, %llu",
                     name, (unsigned long long)piece_bytes, threads, i % 2 ? ", careful" : "",
                     (unsigned long long)cut.instructions, (unsigned long long)cut.errors,
                     (unsigned long long)walk.instructions, (unsigned long long)walk.errors);
    }
}

// --- where tracing is switched on right before a PSB ---------------------------------------------

static size_t put_bytes(uint8_t *out, size_t at, const void *bytes, size_t count)
{
    memcpy(out + at, bytes, count);
    return at + count;
}

static size_t put_address(uint8_t *out, size_t at, uint8_t opcode, uint32_t ip)
{
    uint8_t packet[7] = {(uint8_t)(opcode | 3 << 5)}; // 48 bits
    memcpy(packet + 1, &ip, sizeof ip);
    return put_bytes(out, at, packet, sizeof packet);
}

enum { PGE = 0x11, PGD = 0x01, FUP = 0x1d, NOWHERE = 0 };

// A PSB whose header says that the processor is at `ip`, or that it is not tracing.
static size_t put_psb(uint8_t *out, size_t at, uint32_t ip)
{
    for (int i = 0; i < 8; i++)
        at = put_bytes(out, at, "\x02\x82", 2);
    at = put_bytes(out, at, "\x99\x01", 2); // 64 bits
    if (ip)
        at = put_address(out, at, FUP, ip);
    return put_bytes(out, at, "\x02\x23", 2);
}

static void what_ran_between_enable_and_psb_is_counted(void **state)
{
    enum { ROUNDS = 20, STRAIGHT = 7, REST = 5 };
    uint8_t code[CODE_BYTES], data[8192];
    size_t at = put_psb(data, 0, NOWHERE);
    struct pt_memory memory = {0};
    struct pt_packets packets;
    struct error err;
    (void)state;
    memset(code, 0x90, sizeof code); // no branches at all
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t ip = CODE + i * 100;
        if (i % 2)
            at = put_bytes(data, at, "\x99\x01", 2);
        at = put_address(data, at, PGE, ip);
        at = put_psb(data, at, ip + STRAIGHT);
        at = put_address(data, at, FUP, ip + STRAIGHT + REST);
        at = put_bytes(data, at, "\x01", 1); // TIP.PGD
        if (i % 3 == 0)
            at = put_psb(data, at, NOWHERE);
    }
    assert_int_equal(pt_memory_add_bytes(&memory, code, sizeof code, CODE, PT_SPACE_ALL, &err), 0);
    struct pt_bytes bytes = {.bytes = at, .data = data};
    assert_int_equal(pt_packets_scan(&bytes, &packets, &err), 0);
    struct pt_stream stream = {.bytes = bytes, .packets = &packets};
    struct sums sums = decode_pieces(&memory, &stream, 1, 1, 1, false);
    assert_int_equal(sums.instructions, ROUNDS * (STRAIGHT + REST));
    compare_with_walk(&memory, &stream, 1, PT_SPACE_ALL, "enables before PSBs");
    pt_packets_free(&packets);
    pt_memory_free(&memory);
}

// --- where what follows a PSB is damaged ---------------------------------------------------------

// To end there, the walk over what comes before has to read it, too.
static void an_error_behind_a_psb_is_counted_once(void **state)
{
    enum { ROUNDS = 12, STRAIGHT = 7 };
    uint8_t code[CODE_BYTES], data[8192];
    struct pt_memory memory = {0};
    struct pt_packets packets;
    struct error err;
    uint64_t errors = 0;
    size_t at = 0;
    (void)state;
    memset(code, 0x90, sizeof code);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        at = put_psb(data, at, CODE + i * 100);
        if (i % 3 == 1) { // no such packet
            at = put_bytes(data, at, "\x02\x07", 2);
            errors++;
        }
        at = put_address(data, at, FUP, CODE + i * 100 + STRAIGHT);
        at = put_bytes(data, at, "\x01", 1); // TIP.PGD
        at = put_bytes(data, at, "\x99\x01", 2);
        at = put_address(data, at, PGE, CODE + (i + 1) * 100);
    }
    assert_int_equal(pt_memory_add_bytes(&memory, code, sizeof code, CODE, PT_SPACE_ALL, &err), 0);
    struct pt_bytes bytes = {.bytes = at, .data = data};
    assert_int_equal(pt_packets_scan(&bytes, &packets, &err), 0);
    struct pt_stream stream = {.bytes = bytes, .packets = &packets};
    for (size_t i = 0; i < 2 * SIZES * MOST_THREADS; i++) {
        struct sums cut = decode_pieces(&memory, &stream, 1, piece_sizes[i / 2 % SIZES],
                                        1 + (unsigned)i / (2 * SIZES), i % 2);
        assert_int_equal(cut.errors, errors);
        assert_int_equal(cut.losses, errors);
        assert_int_equal(cut.instructions, (ROUNDS - errors) * STRAIGHT);
    }
    pt_packets_free(&packets);
    pt_memory_free(&memory);
}

enum { EACH = 10, WRONG = 5 }; // of each ten rounds that one has an error

static uint32_t round_ip(uint32_t number, bool no_packet)
{
    return CODE + number % 30 * 100 + (number % EACH == WRONG && !no_packet ? 2 * CODE_BYTES : 0);
}

// The error is a packet that is none, or code that is nowhere.
static size_t put_rounds(uint8_t *data, uint32_t rounds, uint32_t straight, bool no_packet)
{
    size_t at = 0;
    for (uint32_t i = 0; i < rounds; i++) {
        at = put_psb(data, at, round_ip(i, no_packet));
        if (i % EACH == WRONG && no_packet)
            at = put_bytes(data, at, "\x02\x07", 2);
        at = put_address(data, at, FUP, round_ip(i, no_packet) + straight);
        at = put_bytes(data, at, "\x01", 1); // TIP.PGD
        at = put_bytes(data, at, "\x99\x01", 2);
        at = put_address(data, at, PGE, round_ip(i + 1, no_packet));
    }
    return at;
}

// The index of a long stream lacks PSBs. An error takes the fast way only from what lies between
// those around it, whichever these are.
static void an_error_between_psbs_of_the_index_leaves_the_fast_way_there_only(void **state)
{
    enum { ROUNDS = 400, STRAIGHT = 7, FEW_SYNCS = 8 };
    static uint8_t code[CODE_BYTES], data[ROUNDS * 64];
    struct pt_memory memory = {0};
    struct error err;
    (void)state;
    memset(code, 0x90, sizeof code);
    assert_int_equal(pt_memory_add_bytes(&memory, code, sizeof code, CODE, PT_SPACE_ALL, &err), 0);
    for (int no_packet = 0; no_packet < 2; no_packet++) {
        struct pt_bytes bytes = {.bytes = put_rounds(data, ROUNDS, STRAIGHT, no_packet),
                                 .data = data};
        struct pt_packets packets;
        struct pt_stream stream = {.bytes = bytes, .packets = &packets};
        assert_int_equal(pt_packets_scan_thinly(&bytes, FEW_SYNCS, &packets, &err), 0);
        assert_true(packets.syncs.count <= FEW_SYNCS);
        for (int careful = 0; careful < 2; careful++) {
            struct sums sums = decode_pieces(&memory, &stream, 1, 0, 1, careful);
            assert_int_equal(sums.errors, ROUNDS / EACH);
            assert_int_equal(sums.losses, ROUNDS / EACH);
            assert_int_equal(sums.instructions, ROUNDS / EACH * (EACH - 1) * STRAIGHT);
            // and what ends at a packet that is none, which it has to read, too
            if (!careful)
                assert_in_range(sums.followed, bytes.bytes * (EACH - 3) / EACH, bytes.bytes);
        }
        pt_packets_free(&packets);
    }
    pt_memory_free(&memory);
}

struct memories {
    const struct pt_piece *last;
    size_t pieces, moves;
};

static int note_memory(void *context, size_t stream, const struct pt_piece *piece, bool contiguous,
                       struct error *err)
{
    struct memories *memories = context;
    (void)stream, (void)contiguous, (void)err;
    memories->pieces++;
    memories->moves += memories->last && memories->last != piece;
    memories->last = piece;
    return 0;
}

// Of a short trace new memory is most of the cost.
static void one_thread_walks_all_pieces_into_the_same_memory(void **state)
{
    enum { ROUNDS = 100, STRAIGHT = 7 };
    static uint8_t code[CODE_BYTES], data[ROUNDS * 64];
    struct pt_memory memory = {0};
    struct pt_packets packets;
    struct pt_decode_options how = {.threads = 1};
    struct memories memories = {0};
    struct error err;
    (void)state;
    memset(code, 0x90, sizeof code);
    assert_int_equal(pt_memory_add_bytes(&memory, code, sizeof code, CODE, PT_SPACE_ALL, &err), 0);
    struct pt_bytes bytes = {.bytes = put_rounds(data, ROUNDS, STRAIGHT, false), .data = data};
    assert_int_equal(pt_packets_scan(&bytes, &packets, &err), 0);
    struct pt_stream stream = {.bytes = bytes, .packets = &packets};
    assert_int_equal(pt_decode(&memory, NULL, &stream, 1, &how, note_memory, &memories, &err), 0);
    assert_int_equal(memories.pieces, ROUNDS);
    assert_int_equal(memories.moves, 0);
    pt_packets_free(&packets);
    pt_memory_free(&memory);
}

// --- captures ------------------------------------------------------------------------------------

static void compare_capture(void *context, const struct capture *capture,
                            const struct pt_trace *trace, struct pt_stream *streams, size_t count)
{
    (void)context;
    compare_with_walk(&trace->memory, streams, count, (uint32_t)trace->code.places.count - 1,
                      capture->name);
}

static void captures_count_what_libipt_counts(void **state)
{
    (void)state;
    int used = captures_each(compare_capture, NULL);
    if (used == 0)
        skip();
    assert_true(used > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ran_between_enable_and_psb_is_counted),
        cmocka_unit_test(an_error_behind_a_psb_is_counted_once),
        cmocka_unit_test(an_error_between_psbs_of_the_index_leaves_the_fast_way_there_only),
        cmocka_unit_test(one_thread_walks_all_pieces_into_the_same_memory),
        cmocka_unit_test(captures_count_what_libipt_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
