// SPDX-License-Identifier: MIT
//
// The presets against the paper they come from (Atikoglu et al., SIGMETRICS 2012): what their keys
// and values look like, key by key, against the quantiles of the published distributions.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/quantile.h"
#include "workloads/workload.h"

static void load(const char *name, struct workload *workload)
{
    struct error err = {0};
    if (workload_load_file(name, NULL, workload, &err) != 0)
        fail_msg("%s: %s", name, err.text);
}

// The sorted sizes of all keys or values.
static double *sizes_of(const struct workload *workload, bool keys)
{
    char key[WORKLOAD_KEY_BYTES_MAX];
    double *sizes = malloc(workload->key_count * sizeof *sizes);
    assert_non_null(sizes);
    for (uint64_t i = 0; i < workload->key_count; i++)
        sizes[i] =
            (double)(keys ? workload_key(workload, i, key) : workload_value_bytes(workload, i));
    quantile_sort(sizes, workload->key_count);
    return sizes;
}

// GEV(30.7984, 8.20449, 0.078688), section 5.
static double key_quantile(double p)
{
    return 30.7984 + 8.20449 * (pow(-log(p), -0.078688) - 1) / 0.078688;
}

// The paper's table of values below 15 bytes; from there on GPD(214.476, 0.348238).
static const double small_values[] = {0.00536, 0.00047, 0.17820, 0.09239, 0.00018,
                                      0.02740, 0.00065, 0.00606, 0.00023, 0.00837,
                                      0.00837, 0.08989, 0.00092, 0.00326, 0.01980};
enum { SMALL_VALUES = sizeof small_values / sizeof *small_values };

static double value_quantile(double p)
{
    double small = 0.44155;
    if (p >= small)
        return 15 + 214.476 * (pow(1 - (p - small) / (1 - small), -0.348238) - 1) / 0.348238;
    unsigned bytes = 0;
    for (double sum = small_values[0]; bytes < SMALL_VALUES - 1 && p >= sum;)
        sum += small_values[++bytes];
    return bytes;
}

// Sizes between the quantiles a little lower and higher: 100k keys leave 4 standard errors of that.
static void check_quantiles(const double *sizes, size_t count, double (*quantile)(double))
{
    static const double ps[] = {0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999};
    for (size_t i = 0; i < sizeof ps / sizeof *ps; i++) {
        double p = ps[i], error = 4 * sqrt(p * (1 - p) / (double)count);
        double seen = quantile_sorted(sizes, count, p);
        assert_true(seen >= quantile(fmax(p - error, 1e-9)) - 0.5);
        assert_true(seen <= quantile(fmin(p + error, 1 - 1e-9)) + 0.5);
    }
}

// Of each small size as many values as the table says, within 4 standard errors.
static void check_small_values(const double *sizes, size_t count)
{
    for (unsigned bytes = 0; bytes < SMALL_VALUES; bytes++) {
        double p = small_values[bytes], seen = 0;
        for (size_t i = 0; i < count; i++)
            seen += sizes[i] >= bytes && sizes[i] < bytes + 1;
        assert_true(fabs(seen / (double)count - p) < 4 * sqrt(p * (1 - p) / (double)count));
    }
}

static void check_facebook_keys(const struct workload *workload)
{
    double *keys = sizes_of(workload, true);
    check_quantiles(keys, workload->key_count, key_quantile);
    // No buffer is larger than the longest key asks for.
    assert_int_equal(workload_key_bytes_max(workload), (size_t)keys[workload->key_count - 1]);
    free(keys);
}

static void check_facebook_values(const struct workload *workload)
{
    double *values = sizes_of(workload, false);
    check_quantiles(values, workload->key_count, value_quantile);
    check_small_values(values, workload->key_count);
    assert_int_equal(workload_value_bytes_max(workload), (size_t)values[workload->key_count - 1]);
    free(values);
}

static void check_gaps(const struct workload *workload)
{
    assert_int_equal(workload->arrivals.kind, DISTRIBUTION_GPD);
    for (unsigned i = 1; i < 1000; i++) {
        double p = i / 1000.0;
        double expected = 16.0292 * (pow(1 - p, -0.154971) - 1) / 0.154971;
        assert_true(fabs(distribution_quantile(&workload->arrivals, p) - expected) <
                    1e-9 * expected);
    }
    assert_true(fabs(distribution_mean(&workload->arrivals) - 16.0292 / (1 - 0.154971)) < 1e-9);
}

static void etc_is_as_published(void **state)
{
    (void)state;
    struct workload workload;
    load("etc", &workload);
    check_facebook_keys(&workload);
    check_facebook_values(&workload);
    check_gaps(&workload);
    assert_true(workload.mix[WORKLOAD_GET] == 30 * workload.mix[WORKLOAD_SET]);
    workload_free(&workload);
}

static void usr_is_as_published(void **state)
{
    (void)state;
    struct workload workload;
    load("usr", &workload);
    double *keys = sizes_of(&workload, true), *values = sizes_of(&workload, false);
    for (uint64_t i = 0; i < workload.key_count; i++) {
        assert_true(keys[i] == 16 || keys[i] == 21);
        assert_true(values[i] == 2);
    }
    assert_true(keys[0] == 16 && keys[workload.key_count - 1] == 21);
    assert_true(workload.mix[WORKLOAD_GET] == 499 * workload.mix[WORKLOAD_SET]); // 99.8 %
    check_gaps(&workload);
    free(keys);
    free(values);
    workload_free(&workload);
}

static void var_is_mostly_written(void **state)
{
    (void)state;
    struct workload workload;
    load("var", &workload);
    double *keys = sizes_of(&workload, true), *values = sizes_of(&workload, false);
    assert_true(keys[0] == 31 && keys[workload.key_count - 1] == 31);
    double p90 = quantile_sorted(values, workload.key_count, 0.9);
    assert_true(p90 > 450 && p90 < 550); // the authors' talk: 90 % are below 500 bytes
    free(keys);
    free(values);
    check_facebook_values(&workload);
    check_gaps(&workload);
    double get = workload.mix[WORKLOAD_GET], set = workload.mix[WORKLOAD_SET];
    assert_true(fabs(get / (get + set) - 0.18) < 1e-12);
    workload_free(&workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(etc_is_as_published),
        cmocka_unit_test(usr_is_as_published),
        cmocka_unit_test(var_is_mostly_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
