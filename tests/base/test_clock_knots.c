// SPDX-License-Identifier: MIT
//
// A NIC's clock told in CLOCK_REALTIME: on, between and beyond the knots, at wrong rates. What
// needs a NIC is tested in the guest (tests/guest/test_long_hardware_stamps.sh).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock_knots.h"

static const int64_t real_begin = 1763000000000000000, phc_begin = 1000000000000000;

// The PHC is fast by so many parts per 10^9.
static int64_t phc_at(int64_t real_ns, int64_t ppb)
{
    int64_t since = real_ns - real_begin;
    return phc_begin + since + since / 1000000 * ppb / 1000;
}

static void lines_between_knots(void **state)
{
    (void)state;
    struct clock_knot_array knots = {0};
    for (int64_t ms = 0; ms <= 60000; ms += 100) {
        int64_t real_ns = real_begin + ms * 1000000;
        assert_int_equal(array_push(&knots, (struct clock_knot){phc_at(real_ns, 50000), real_ns,
                                                                ms == 700 ? 90 : 40}),
                         0);
    }
    for (int64_t ms = -50; ms <= 60050; ms += 25) {
        int64_t real_ns = real_begin + ms * 1000000;
        int64_t found = (int64_t)clock_knots_map(&knots, false, (int64_t)phc_at(real_ns, 50000));
        assert_in_range((uint64_t)(found - real_ns + 2), 0, 4);
    }
    assert_int_equal(clock_knots_error(&knots), 90);
    array_free(&knots);
}

static void one_knot_is_an_offset(void **state)
{
    (void)state;
    struct clock_knot_array knots = {0};
    assert_int_equal(array_push(&knots, (struct clock_knot){phc_begin, real_begin, 1}), 0);
    assert_int_equal(clock_knots_map(&knots, false, (int64_t)phc_begin + 5), real_begin + 5);
    assert_int_equal(clock_knots_map(&knots, false, (int64_t)phc_begin - 5), real_begin - 5);
    array_free(&knots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_between_knots),
        cmocka_unit_test(one_knot_is_an_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
