// SPDX-License-Identifier: MIT
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/histogram.h"
#include "base/quantile.h"
#include "base/hash.h"

static struct histogram *make(void)
{
    struct histogram *histogram = calloc(1, sizeof *histogram);
    assert_non_null(histogram);
    return histogram;
}

// Slots follow one another without gap or overlap, and every value finds the one it lies in.
static void slots_tile_the_values(void **state)
{
    (void)state;
    assert_true(histogram_lowest(0) == 0);
    for (size_t slot = 0; slot < HISTOGRAM_SLOTS; slot++) {
        uint64_t low = histogram_lowest(slot), high = histogram_highest(slot);
        assert_true(low <= high);
        assert_true(histogram_slot(low) == slot && histogram_slot(high) == slot);
        assert_true(high - low <= low / HISTOGRAM_HALF);
        if (slot)
            assert_true(low == histogram_highest(slot - 1) + 1);
    }
    assert_true(histogram_highest(HISTOGRAM_SLOTS - 1) == HISTOGRAM_VALUE_MAX);
    assert_true(histogram_slot(UINT64_MAX) == HISTOGRAM_SLOTS - 1);
}

static void quantiles_are_within_a_thousandth(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static double values[COUNT];
    struct histogram *histogram = make();
    assert_true(isnan(histogram_quantile(histogram, 0.5)));
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t value = hash64(i) >> (24 + hash64(i + COUNT) % 36);
        values[i] = (double)value;
        histogram_record(histogram, value);
    }
    quantile_sort(values, COUNT);
    for (double q = 0; q <= 1; q += 0.001) {
        double exact = quantile_sorted(values, COUNT, q), found = histogram_quantile(histogram, q);
        assert_true(found >= exact && found <= exact * (1 + 1.0 / HISTOGRAM_HALF));
    }
    free(histogram);
}

static void the_infinite_lie_above_all(void **state)
{
    (void)state;
    struct histogram *some = make(), *all = make();
    for (unsigned i = 0; i < 99; i++)
        histogram_record(some, 7);
    histogram_record_infinite(some);
    histogram_merge(all, some);
    histogram_merge(all, some);
    assert_true(histogram_count(all) == 200 && all->infinite == 2);
    assert_true(histogram_quantile(all, 0.99) == 7);
    assert_true(isinf(histogram_quantile(all, 0.991)));
    free(some);
    free(all);
}

static char *percentiles_of(const struct histogram *histogram, double unit)
{
    char *text = NULL;
    size_t bytes = 0;
    struct error err;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    assert_int_equal(histogram_write_percentiles(histogram, unit, "latency", out, &err), 0);
    fclose(out);
    return text;
}

// By hand, from the format's definition: levels advance by 1/(5 * 2^n), n the halvings of the
// distance to 1 begun; the row of a level is the first slot whose share reaches it. Eight values,
// an eighth of the whole each; 3,000 shares its slot with 3,001.
static void the_table_is_as_the_format_has_it(void **state)
{
    (void)state;
    const uint64_t values[8] = {100, 200, 300, 400, 500, 600, 700, 3000};
    struct histogram *histogram = make();
    for (unsigned i = 0; i < 8; i++)
        histogram_record(histogram, values[i]);
    char *text = percentiles_of(histogram, 1000);
    assert_string_equal(text, "# latency\n"
                              "       Value     Percentile TotalCount 1/(1-Percentile)\n\n"
                              "       0.100 0.000000000000          1           1.00\n"
                              "       0.100 0.100000000000          1           1.11\n"
                              "       0.200 0.200000000000          2           1.25\n"
                              "       0.300 0.300000000000          3           1.43\n"
                              "       0.400 0.400000000000          4           1.67\n"
                              "       0.400 0.500000000000          4           2.00\n"
                              "       0.500 0.550000000000          5           2.22\n"
                              "       0.500 0.600000000000          5           2.50\n"
                              "       0.600 0.650000000000          6           2.86\n"
                              "       0.600 0.700000000000          6           3.33\n"
                              "       0.600 0.750000000000          6           4.00\n"
                              "       0.700 0.775000000000          7           4.44\n"
                              "       0.700 0.800000000000          7           5.00\n"
                              "       0.700 0.825000000000          7           5.71\n"
                              "       0.700 0.850000000000          7           6.67\n"
                              "       0.700 0.875000000000          7           8.00\n"
                              "       3.001 0.887500000000          8           8.89\n"
                              "       3.001 1.000000000000          8\n"
                              "#[Mean    =        0.725, StdDeviation   =        0.880]\n"
                              "#[Max     =        3.001, Total count    =            8]\n"
                              "#[Buckets =           32, SubBuckets     =         2048]\n");
    free(text);
    free(histogram);
}

static void the_table_ends_where_the_infinite_begin(void **state)
{
    (void)state;
    struct histogram *histogram = make();
    for (unsigned i = 0; i < 6; i++)
        histogram_record(histogram, 100);
    histogram_record_infinite(histogram);
    histogram_record_infinite(histogram);
    char *text = percentiles_of(histogram, 1);
    assert_non_null(strstr(text, "# 2 of 8 values are infinite"));
    assert_non_null(strstr(text, "     100.000 0.750000000000          6           4.00\n#[Mean"));
    assert_non_null(strstr(text, "Total count    =            8]"));
    free(text);
    free(histogram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_tile_the_values),
        cmocka_unit_test(quantiles_are_within_a_thousandth),
        cmocka_unit_test(the_infinite_lie_above_all),
        cmocka_unit_test(the_table_is_as_the_format_has_it),
        cmocka_unit_test(the_table_ends_where_the_infinite_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
