// SPDX-License-Identifier: MIT
//
// Which causes are named between two sets of runs, on profiles made by hand: a slice of requests
// that are slow by themselves and of such as waited behind one, in a mixture that differs from run
// to run more than what was changed.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/compare/cause_shift.h"

enum { RUNS = 5, MESSAGES = 20, APPLICATION = 0, BLOCKING = 1 };

struct sides {
    struct slice_profile profiles[COMPARE_SIDES][RUNS];
    struct slice_profile_list lists[COMPARE_SIDES];
};

static void add(struct slice_profile *profile, uint32_t component, uint32_t block, double ns)
{
    const struct profile_value value = {component, block, (float)ns};
    assert_int_equal(array_push(&profile->values, value), 0);
}

// A run of the side; `behind` of its messages waited behind a slow one.
static void make_profile(struct slice_profile *profile, double slow_ns, int behind, int run)
{
    const struct profile_component application = {
        .name = "application time", .role = ROLE_A, .explains = false};
    const struct profile_component blocking = {
        .name = "head-of-line blocking", .role = ROLE_A, .explains = true};
    *profile =
        (struct slice_profile){.available = true, .messages = MESSAGES, .granularity_ns = 100};
    assert_int_equal(array_push(&profile->components, application), 0);
    assert_int_equal(array_push(&profile->components, blocking), 0);
    double sum = 0;
    for (int i = 0; i < MESSAGES; i++) {
        uint32_t block = (uint32_t)i * 2;
        double own = i < behind ? 100e3 : slow_ns + 500 * (i + run);
        double waited = i < behind ? slow_ns + 40e3 * i : 0;
        add(profile, APPLICATION, block, own);
        if (waited > 0)
            add(profile, BLOCKING, block, waited);
        profile->block_messages[block]++;
        sum += own + waited;
    }
    profile->mean_ns = sum / MESSAGES;
}

static void make(struct sides *sides, double base_ns, double candidate_ns)
{
    static const int behind[COMPARE_SIDES][RUNS] = {{1, 8, 3, 6, 2}, {7, 2, 9, 4, 5}};
    memset(sides, 0, sizeof *sides);
    for (int side = 0; side < COMPARE_SIDES; side++)
        for (int r = 0; r < RUNS; r++) {
            make_profile(&sides->profiles[side][r], side ? candidate_ns : base_ns, behind[side][r],
                         r);
            assert_int_equal(array_push(&sides->lists[side], &sides->profiles[side][r]), 0);
        }
}

static void end(struct sides *sides)
{
    for (int side = 0; side < COMPARE_SIDES; side++) {
        array_free(&sides->lists[side]);
        for (int r = 0; r < RUNS; r++) {
            array_free(&sides->profiles[side][r].components);
            array_free(&sides->profiles[side][r].values);
        }
    }
}

// 10 % more of what most messages are slow by drowns in the means, and not in the medians.
static void a_mixture(void **state)
{
    (void)state;
    struct sides sides;
    struct slice_shift shift;
    struct named_shift named[3];
    struct error err = {0};
    make(&sides, 2e6, 2.2e6);
    assert_int_equal(slice_shift(sides.lists, 0.99, &shift, &err), 0);
    assert_true(shift.available);
    assert_int_equal(slice_shift_named(&shift, true, named, 3), 1);
    assert_true(named[0].by_median);
    assert_string_equal(named[0].cause->name, "application time");
    assert_true(named[0].cause->interval.low < 0 && named[0].cause->interval.high > 0);
    assert_true(fabs(named[0].cause->median_difference_ns - 200e3) < 10e3);
    assert_true(named[0].cause->median_interval.low > 150e3);
    assert_true(named[0].cause->median_interval.high < 250e3);
    assert_int_equal(slice_shift_named(&shift, false, named, 3), 0);
    for (size_t i = 0; i < shift.causes.count; i++) // on fewer than half of the messages
        if (strcmp(shift.causes.items[i].name, "head-of-line blocking") == 0)
            assert_true(isnan(shift.causes.items[i].median_difference_ns));
    slice_shift_free(&shift);
    end(&sides);
}

static void equal_sides(void **state)
{
    (void)state;
    struct sides sides;
    struct slice_shift shift;
    struct named_shift named[3];
    struct error err = {0};
    make(&sides, 2e6, 2e6);
    assert_int_equal(slice_shift(sides.lists, 0.99, &shift, &err), 0);
    assert_int_equal(slice_shift_named(&shift, true, named, 3), 0);
    assert_int_equal(slice_shift_named(&shift, false, named, 3), 0);
    slice_shift_free(&shift);
    end(&sides);
}

// What the means show is named first and once, and no more than asked for.
static void means_first(void **state)
{
    (void)state;
    struct sides sides;
    struct slice_shift shift;
    struct named_shift named[3];
    struct error err = {0};
    make(&sides, 2e6, 9e6);
    assert_int_equal(slice_shift(sides.lists, 0.99, &shift, &err), 0);
    assert_in_range(slice_shift_named(&shift, true, named, 3), 1, 2);
    assert_string_equal(named[0].cause->name, "application time");
    assert_false(named[0].by_median);
    assert_int_equal(slice_shift_named(&shift, true, named, 0), 0);
    slice_shift_free(&shift);
    end(&sides);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mixture),
        cmocka_unit_test(equal_sides),
        cmocka_unit_test(means_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
