// SPDX-License-Identifier: MIT
//
// The fast way through a trace gives what libipt's block decoder gives, bit for bit, on whole
// traces and on damaged ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/analysis/pt/pt_both_ways.h"

enum { SEEDS = 2000 };

static void whole_traces_are_followed_all_the_way(void **state)
{
    (void)state;
    struct both_ways sum = {0};
    assert_int_equal(seeds_both_ways(1, SEEDS, false, &sum), 0);
    assert_true(sum.flows > SEEDS * 100);
    assert_true(sum.paths > SEEDS * 10);
    assert_true(sum.trails > SEEDS);
    assert_int_equal(sum.errors, 0);
    assert_int_equal(sum.followed_bytes, sum.bytes);
}

// What is followed through damage is the same, and so are the errors that are found there; most of
// them are left to libipt.
static void damaged_traces_are_followed_or_left_to_libipt(void **state)
{
    (void)state;
    struct both_ways sum = {0};
    assert_int_equal(seeds_both_ways(100000, SEEDS, true, &sum), 0);
    assert_true(sum.errors > SEEDS / 2);
    assert_true(sum.followed_errors > SEEDS / 100);
    assert_true(sum.followed_bytes < sum.bytes);
}

static void an_error_leaves_the_rest_to_the_fast_way(void **state)
{
    enum { LONG_SEEDS = 100, LONG_BYTES = 20000, PSB_BYTES = 500 };
    (void)state;
    struct both_ways sum = {0};
    for (uint64_t seed = 1; seed <= LONG_SEEDS; seed++) {
        struct scenario scenario = {.seed = seed, .bytes = LONG_BYTES, .psb_bytes = PSB_BYTES};
        assert_int_equal(both_ways(&scenario, 2, seed % 2, &sum), 0);
    }
    assert_true(sum.errors > LONG_SEEDS);
    assert_true(sum.followed_bytes > sum.bytes / 10 * 8);
    assert_true(sum.followed_bytes < sum.bytes);
}

// --- code and packets by hand --------------------------------------------------------------------
// What a scenario hardly ever comes upon: it needs paths (pt_paths.h) that were learned, and then a
// trace that does not fit them. ROUNDS: more than a path takes to be learned. LAST_BYTES: nearer to
// its end a trace is not read fast.

enum { HAND_CODE = 0x400000, HAND_BYTES = 4096, ROUNDS = 100, LAST_BYTES = 16 };

struct by_hand {
    struct writer writer;
    struct pt_encoder *encoder;
    uint8_t trace[HAND_BYTES * 4], code[HAND_BYTES];
    size_t code_bytes;
};

static void hand_begin(struct by_hand *hand, const void *code, size_t bytes)
{
    struct pt_config config;
    memset(hand, 0, sizeof *hand);
    memcpy(hand->code, code, bytes);
    hand->code_bytes = bytes;
    pt_config_init(&config);
    config.begin = hand->trace;
    config.end = hand->trace + sizeof hand->trace;
    hand->writer = (struct writer){.encoder = pt_alloc_encoder(&config), .now = 1000, .ratio = 1};
    assert_non_null(hand->writer.encoder);
    write_psb(&hand->writer, HAND_CODE);
}

// A TNT packet for each six of them, as in "010011".
static void hand_branches(struct by_hand *hand, const char *branches)
{
    for (; *branches; branches++)
        write_branch(&hand->writer, *branches == '1');
    write_tnt(&hand->writer);
}

static void hand_target(struct by_hand *hand, size_t offset)
{
    write_address(&hand->writer, ppt_tip, HAND_CODE + offset);
}

static void stream_by_hand(const struct pt_memory *memory, const struct pt_stream *stream,
                           bool short_trails, struct both_ways *sum)
{
    struct both_walkers walkers = {.memory = memory};
    struct error err;
    walkers.follower = pt_walker_alloc(memory, NULL, false, &err);
    walkers.careful = pt_walker_alloc(memory, NULL, true, &err);
    assert_non_null(walkers.follower);
    assert_non_null(walkers.careful);
    if (short_trails)
        follow_short_trails(walkers.follower);
    assert_int_equal(stream_both_ways(&walkers, stream, false, sum), 0);
    const struct pt_path_list *paths = &walkers.follower->paths.list;
    for (size_t i = 0; i < paths->count; i++)
        if (paths->items[i].bits > sum->longest_path)
            sum->longest_path = paths->items[i].bits;
    sum->trails += walkers.follower->trails.list.count;
    pt_walker_free(walkers.follower);
    pt_walker_free(walkers.careful);
}

// The same both ways, without trails (pt_trails.h) and with them; what is walked again and again
// has become paths by then, and trails. Returns the latter.
static struct both_ways hand_both_ways(struct by_hand *hand)
{
    struct pt_packets packets;
    struct pt_memory memory = {0};
    struct error err;
    struct both_ways sum = {0};
    for (int i = 0; i < LAST_BYTES; i++)
        write_packet(&hand->writer, (struct pt_packet){.type = ppt_pad});
    assert_false(hand->writer.failed);
    struct pt_stream stream = {
        .bytes = {.bytes = writer_offset(&hand->writer), .data = hand->trace}, .packets = &packets};
    assert_false(hand->writer.failed);
    assert_int_equal(
        pt_memory_add_bytes(&memory, hand->code, hand->code_bytes, HAND_CODE, PT_SPACE_ALL, &err),
        0);
    assert_int_equal(pt_packets_scan(&stream.bytes, &packets, &err), 0);
    struct both_ways without = {0};
    stream_by_hand(&memory, &stream, false, &without);
    stream_by_hand(&memory, &stream, true, &sum);
    assert_int_equal(sum.errors, without.errors);
    pt_packets_free(&packets);
    pt_memory_free(&memory);
    pt_free_encoder(hand->writer.encoder);
    assert_true(sum.paths > 0);
    return sum;
}

static void a_path_takes_a_return_address_away_once(void **state)
{
    static const uint8_t code[] = {
        0xe8, 3,    0, 0, 0, // 0: call 8
        0x75, 0xf9,          // 5: jnz 0
        0xc3,                // 7: a return to nowhere
        0xff, 0xe0,          // 8: jmp *rax, to 10
        0x74, 0,             // 10: jz 12
        0xc3,                // 12: back to 5
    };
    static struct by_hand hand;
    (void)state;
    hand_begin(&hand, code, sizeof code);
    for (int i = 0; i < ROUNDS; i++) {
        hand_target(&hand, 10);
        hand_branches(&hand, i < ROUNDS - 1 ? "011" : "0101");
    }
    assert_int_equal(hand_both_ways(&hand).errors, 1);
}

static void a_path_takes_no_target_before_all_branches(void **state)
{
    static struct by_hand hand;
    uint8_t code[8 + 2 * PT_PATH_BITS + 1] = {
        0xe8, 3,    0, 0, 0, // 0: call 8
        0xff, 0xe0,          // 5: jmp *rax, to 0
    };
    char branches[PT_PATH_BITS + 2] = {0};
    (void)state;
    for (size_t i = 0; i < PT_PATH_BITS; i++)
        code[8 + 2 * i] = 0x74; // jz to the next one
    code[sizeof code - 1] = 0xc3;
    memset(branches, '0', PT_PATH_BITS);
    branches[PT_PATH_BITS] = '1'; // back to 5: one branch more than a path has
    hand_begin(&hand, code, sizeof code);
    for (int i = 0; i < ROUNDS; i++) {
        hand_branches(&hand, branches);
        hand_target(&hand, 0);
    }
    struct both_ways sum = hand_both_ways(&hand);
    assert_int_equal(sum.errors, 0);
    assert_int_equal(sum.followed_bytes, sum.bytes);
}

static const uint8_t branch_and_jump[] = {
    0x74, 0,    // 0: jz 2
    0xff, 0xe0, // 2: jmp *rax, to 0
};

static void branches_before_a_target_are_no_jump(void **state)
{
    static struct by_hand hand;
    (void)state;
    hand_begin(&hand, branch_and_jump, sizeof branch_and_jump);
    for (int i = 0; i < ROUNDS; i++) {
        hand_branches(&hand, i < ROUNDS - 1 ? "0" : "00");
        if (i == ROUNDS - 1)
            hand_branches(&hand, "0"); // of another packet
        hand_target(&hand, 0);
    }
    assert_int_equal(hand_both_ways(&hand).errors, 1);
}

// Tracing is switched off before it is stopped; libipt takes anything else for an error.
static void a_trace_that_goes_on_behind_a_stop_is_damaged(void **state)
{
    static struct by_hand hand;
    (void)state;
    hand_begin(&hand, branch_and_jump, sizeof branch_and_jump);
    for (int i = 0; i < ROUNDS; i++) {
        hand_branches(&hand, "0");
        hand_target(&hand, 0);
        if (i == ROUNDS - 2)
            write_packet(&hand.writer, (struct pt_packet){.type = ppt_stop});
    }
    assert_int_equal(hand_both_ways(&hand).errors, 1);
}

// However many packets of branches there are, and in whichever of them a jump's target should have
// come instead: that many branches wait there.
static void branches_wait_in_many_packets(size_t waiting)
{
    enum { MOST = 66 };
    static const uint8_t code[] = {
        0x75, 0xfe, // 0: jnz 0
        0xff, 0xe0, // 2: jmp *rax, to 0
    };
    static struct by_hand hand;
    uint64_t errors = 0; // none where all that wait begin a packet: libipt drops those
    for (size_t turns = 1; turns < MOST; turns++) {
        char branches[2 * MOST] = {0}, wrong[2 * MOST] = {0};
        memset(branches, '1', turns);
        memset(wrong, '1', turns + 1 + waiting);
        branches[turns] = wrong[turns] = '0';
        hand_begin(&hand, code, sizeof code);
        for (int i = 0; i < ROUNDS; i++) {
            hand_branches(&hand, i < ROUNDS - 1 ? branches : wrong);
            hand_target(&hand, 0);
        }
        struct both_ways sum = hand_both_ways(&hand);
        errors += sum.errors;
        assert_true(turns <= PT_PATH_BITS || sum.longest_path > PT_PATH_BITS);
    }
    assert_true(errors > MOST / 2);
}

static void branches_of_many_packets_are_taken_together(void **state)
{
    (void)state;
    branches_wait_in_many_packets(6); // one packet's
    branches_wait_in_many_packets(30);
}

// As many calls as return addresses are kept, and two more in a path: the two oldest are lost.
static void a_path_drops_the_oldest_return_addresses(void **state)
{
    static const uint8_t code[] = {
        0x74, 5,                      // 0: jz 7
        0xe8, 0xf9, 0xff, 0xff, 0xff, // 2: call 0
        0xe8, 3,    0,    0,    0,    // 7: call 15
        0x74, 0,                      // 12: jz 14
        0xc3,                         // 14: back to 7
        0xe8, 1,    0,    0,    0,    // 15: call 21
        0xc3,                         // 20
        0x74, 0,                      // 21: jz 23
        0xc3,                         // 23
    };
    static struct by_hand hand;
    (void)state;
    hand_begin(&hand, code, sizeof code);
    for (int i = 0; i < ROUNDS; i++) {
        hand_branches(&hand, "10110");
        hand_target(&hand, 0);
    }
    for (int i = 0; i < PT_FOLLOW_RETURNS; i++)
        hand_branches(&hand, "0");
    hand_branches(&hand, "1");
    for (int i = 0; i < PT_FOLLOW_RETURNS; i++)
        hand_branches(&hand, "01101");
    assert_int_equal(hand_both_ways(&hand).errors, 1);
}

// The same branches and the same target, of a function that was called from two places.
static void a_trail_comes_back_to_where_it_was_called(void **state)
{
    enum { BRANCHES = 600, FUNCTION = 20 };
    static struct by_hand hand;
    uint8_t code[FUNCTION + 2 * BRANCHES + 1] = {
        0xe8, 15,   0, 0, 0, // 0: call 20
        0xff, 0xe0,          // 5: jmp *rax, to 14
        0xe8, 8,    0, 0, 0, // 7: call 20
        0xff, 0xe0,          // 12: jmp *rax, to 14
        0xff, 0xe0,          // 14: jmp *rax, to 0 or 7
    };
    char branches[BRANCHES + 2] = {0};
    struct random_source random = {1};
    (void)state;
    for (size_t i = 0; i < BRANCHES; i++)
        code[FUNCTION + 2 * i] = 0x74; // jz to the next one
    code[sizeof code - 1] = 0xc3;
    memset(branches, '0', BRANCHES);
    branches[BRANCHES] = '1';
    hand_begin(&hand, code, sizeof code);
    for (int i = 0; i < ROUNDS; i++) {
        hand_branches(&hand, branches);
        hand_target(&hand, 14);
        hand_target(&hand, random_below(&random, 2) ? 7 : 0);
    }
    struct both_ways sum = hand_both_ways(&hand);
    assert_int_equal(sum.errors, 0);
    assert_int_equal(sum.followed_bytes, sum.bytes);
    assert_true(sum.trails > 2);
}

// Many ways, of which some have the same place in the table of paths: they are learned for all
// that.
static void paths_of_the_same_place_are_learned(void **state)
{
    enum { BRANCHES = 24, WAYS = 1000 };
    static struct by_hand hand;
    uint8_t code[2 * BRANCHES + 2] = {0};
    char branches[BRANCHES + 1] = {0};
    struct random_source random = {1};
    (void)state;
    for (size_t i = 0; i < BRANCHES; i++)
        code[2 * i] = 0x74;    // jz to the next one
    code[2 * BRANCHES] = 0xff; // jmp *rax, to 0
    code[2 * BRANCHES + 1] = 0xe0;
    hand_begin(&hand, code, sizeof code);
    for (int i = 0; i < WAYS; i++) {
        for (int k = 0; k < BRANCHES; k++)
            branches[k] = random_below(&random, 2) ? '1' : '0';
        hand_branches(&hand, branches);
        hand_target(&hand, 0);
    }
    struct both_ways sum = hand_both_ways(&hand);
    assert_int_equal(sum.errors, 0);
    assert_in_range(sum.paths, WAYS - WAYS / 100, WAYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_traces_are_followed_all_the_way),
        cmocka_unit_test(damaged_traces_are_followed_or_left_to_libipt),
        cmocka_unit_test(an_error_leaves_the_rest_to_the_fast_way),
        cmocka_unit_test(a_path_takes_a_return_address_away_once),
        cmocka_unit_test(a_path_takes_no_target_before_all_branches),
        cmocka_unit_test(branches_before_a_target_are_no_jump),
        cmocka_unit_test(a_trace_that_goes_on_behind_a_stop_is_damaged),
        cmocka_unit_test(branches_of_many_packets_are_taken_together),
        cmocka_unit_test(a_path_drops_the_oldest_return_addresses),
        cmocka_unit_test(a_trail_comes_back_to_where_it_was_called),
        cmocka_unit_test(paths_of_the_same_place_are_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
