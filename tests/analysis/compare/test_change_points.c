// SPDX-License-Identifier: MIT
//
// Change points of series whose truth is known: none, one, two, a level that returns, an outlier.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>

#include "analysis/compare/change_points.h"

// Normal noise of that spread around levels, each for so many values.
static size_t series(gsl_rng *random, double spread, const double levels[][2], size_t count,
                     double *out)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < (size_t)levels[i][1]; k++)
            out[used++] = levels[i][0] + gsl_ran_gaussian(random, spread);
    return used;
}

static void quiet_series_have_none(void **state)
{
    (void)state;
    double values[40];
    struct change_point_array found;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    int alarms = 0;
    for (int i = 0; i < 100; i++) {
        size_t count = series(random, 5, (const double[][2]){{100, 40}}, 1, values);
        assert_int_equal(change_points_find(values, count, &found), 0);
        alarms += found.count > 0;
        array_free(&found);
    }
    print_message("%d of 100 quiet series have a change point\n", alarms);
    assert_true(alarms <= 4); // 1 is expected
    for (int i = 0; i < 40; i++)
        values[i] = 7;
    assert_int_equal(change_points_find(values, 40, &found), 0);
    assert_int_equal(found.count, 0);
    assert_int_equal(change_points_find(values, 5, &found), 0);
    assert_int_equal(found.count, 0);
    assert_int_equal(change_points_find(values, 0, &found), 0);
    assert_int_equal(found.count, 0);
    gsl_rng_free(random);
}

static void known_changes_are_found_where_they_are(void **state)
{
    (void)state;
    double values[100];
    struct change_point_array found;
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    size_t count =
        series(random, 2, (const double[][2]){{100, 20}, {110, 15}, {90, 25}}, 3, values);
    assert_int_equal(change_points_find(values, count, &found), 0);
    assert_int_equal(found.count, 2);
    assert_in_range(found.items[0].first, 19, 21);
    assert_in_range(found.items[1].first, 34, 36);
    assert_true(fabs(found.items[0].before - 100) < 2 && fabs(found.items[0].after - 110) < 2);
    assert_true(fabs(found.items[1].after - 90) < 2);
    assert_true(found.items[0].p <= 0.01 && found.items[1].p <= 0.01);
    array_free(&found);
    // A level that returns to where it was.
    count = series(random, 2, (const double[][2]){{100, 20}, {112, 10}, {100, 20}}, 3, values);
    assert_int_equal(change_points_find(values, count, &found), 0);
    assert_int_equal(found.count, 2);
    assert_in_range(found.items[0].first, 19, 21);
    assert_in_range(found.items[1].first, 29, 31);
    array_free(&found);
    // One wild run is not a new level.
    count = series(random, 2, (const double[][2]){{100, 30}}, 1, values);
    values[14] = 300;
    assert_int_equal(change_points_find(values, count, &found), 0);
    assert_int_equal(found.count, 0);
    array_free(&found);
    gsl_rng_free(random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_series_have_none),
        cmocka_unit_test(known_changes_are_found_where_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
