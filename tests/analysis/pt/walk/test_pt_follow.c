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
        assert_int_equal(both_ways(&scenario, 2, seed % 2, true, &sum), 0);
    }
    assert_true(sum.errors > LONG_SEEDS);
    assert_true(sum.others < LONG_SEEDS / 10);
    assert_true(sum.followed_bytes > sum.bytes / 10 * 8);
    assert_true(sum.followed_bytes < sum.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_traces_are_followed_all_the_way),
        cmocka_unit_test(damaged_traces_are_followed_or_left_to_libipt),
        cmocka_unit_test(an_error_leaves_the_rest_to_the_fast_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
