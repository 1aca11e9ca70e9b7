// SPDX-License-Identifier: MIT
//
// Random call trees with interrupts, syscalls, switches, tail calls, longjmp, transactions, several
// address spaces and lost packets, timed by TSC, MTC and the cycles of a clock whose ratio changes,
// on four CPUs, through libipt's encoder and back: the spans must be the true ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/analysis/pt/pt_round_trip.h"

enum { SEEDS = 2000 };

static void every_seed_comes_back(void **state)
{
    (void)state;
    struct round_trips sum = {0};
    assert_int_equal(round_trips(1, SEEDS, 9000, &sum), 0);
    assert_true(sum.spans > SEEDS * 1000);
    assert_true(sum.ratio_changes > SEEDS * 2);
    assert_true(deeds_are_many(&sum.did, SEEDS));
}

// Where nobody knows how long a cycle is, times are as uncertain as they say.
static void cycles_of_unknown_length_claim_nothing(void **state)
{
    enum { FEW_SEEDS = 100 };
    (void)state;
    struct round_trips sum = {0};
    for (uint64_t seed = 1; seed <= FEW_SEEDS; seed++) {
        struct scenario scenario = {.seed = seed,
                                    .bytes = 6000,
                                    .psb_bytes = 300 + (unsigned)seed * 17,
                                    .timing_chosen = true,
                                    .timing = seed % 2 ? TIMING_CYC : TIMING_MTC_CYC,
                                    .uncalibrated = true};
        struct pt_decode_options options = {.threads = 1, .piece_bytes = 1 + seed % 5 * 900};
        assert_int_equal(round_trip(&scenario, &options, &sum), 0);
    }
    assert_true(sum.spans > FEW_SEEDS * 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_seed_comes_back),
        cmocka_unit_test(cycles_of_unknown_length_claim_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
