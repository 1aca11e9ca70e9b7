// SPDX-License-Identifier: MIT
//
// Random call trees with interrupts, syscalls, switches, tail calls, longjmp and lost packets on
// four CPUs, through the encoder of libipt and back, thousands of seeds of longer traces.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/analysis/pt_round_trip.h"

enum { SEEDS = 20000 };

static void every_seed_comes_back(void **state)
{
    (void)state;
    uint64_t spans = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct scenario scenario = {.seed = seed,
                                    .bytes = 2000 + seed * 37 % 29000,
                                    .psb_bytes = 200 + (unsigned)(seed * 211 % 3000),
                                    .faults = seed % 3 == 0};
        struct pt_decode_options options = {.threads = 1 + (unsigned)seed % 3,
                                            .piece_bytes = 1 + seed % 7 * 500};
        if (round_trip(&scenario, &options, &spans) < 0)
            fail_msg("seed %d", (int)seed);
    }
    assert_true(spans > SEEDS * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_seed_comes_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
