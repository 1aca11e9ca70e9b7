// SPDX-License-Identifier: MIT
//
// Samples drawn against the quantiles and moments theory gives, with fixed seeds: Kolmogorov and
// Smirnov's distance for continuous distributions, a chi-square statistic for ranks.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <gsl/gsl_cdf.h>

#include "base/quantile.h"
#include "workloads/distribution.h"

enum { SAMPLES = 200000 };

// The largest distance between the sample's quantiles' probabilities and where they should be, by
// way of quantile(): at each of 999 probabilities, the fraction of the sample below.
static double worst_distance(const struct distribution *distribution, const double *sorted)
{
    double worst = 0;
    for (unsigned i = 1; i < 1000; i++) {
        double p = i / 1000.0, value = distribution_quantile(distribution, p);
        size_t below = 0, step = SAMPLES;
        while (step /= 2)
            while (below + step <= SAMPLES && sorted[below + step - 1] <= value)
                below += step;
        worst = fmax(worst, fabs((double)below / SAMPLES - p));
    }
    return worst;
}

static void check_continuous(struct distribution distribution, double deviation)
{
    uint64_t random = 7;
    double *values = malloc(SAMPLES * sizeof *values), sum = 0, squares = 0;
    assert_non_null(values);
    for (size_t i = 0; i < SAMPLES; i++) {
        values[i] = distribution_sample(&distribution, &random);
        sum += values[i];
    }
    double mean = sum / SAMPLES;
    for (size_t i = 0; i < SAMPLES; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    quantile_sort(values, SAMPLES);
    // 1.95 / sqrt(n): exceeded once in a thousand seeds, and this seed is fixed.
    assert_true(worst_distance(&distribution, values) < 1.95 / sqrt(SAMPLES));
    assert_true(fabs(mean - distribution_mean(&distribution)) < 4 * deviation / sqrt(SAMPLES));
    assert_true(fabs(sqrt(squares / SAMPLES) / deviation - 1) < 0.02);
    free(values);
}

static void uniform_is_uniform(void **state)
{
    (void)state;
    check_continuous(
        (struct distribution){.kind = DISTRIBUTION_UNIFORM, .first = 100, .second = 300},
        200 / sqrt(12));
}

static void exponential_is_exponential(void **state)
{
    (void)state;
    const struct distribution distribution = {.kind = DISTRIBUTION_EXPONENTIAL, .first = 40};
    check_continuous(distribution, 40);
    assert_true(fabs(distribution_quantile(&distribution, 0.5) - 40 * M_LN2) < 1e-9);
}

// --- the others: their distribution functions written down here, from the textbook ---------------

// Coles, "An Introduction to Statistical Modeling of Extreme Values", Springer 2001: 4.2 and 3.1.
static double gpd_below(const struct distribution *d, double x)
{
    double z = (x - d->first) / d->second;
    return fabs(d->third) > 0 ? 1 - pow(fmax(1 + d->third * z, 0), -1 / d->third) : 1 - exp(-z);
}

static double gev_below(const struct distribution *d, double x)
{
    double z = (x - d->first) / d->second;
    if (!(fabs(d->third) > 0))
        return exp(-exp(-z));
    double base = 1 + d->third * z;
    if (base <= 0)
        return d->third > 0 ? 0 : 1;
    return exp(-pow(base, -1 / d->third));
}

static double fraction_below(const struct distribution *d, double x)
{
    switch (d->kind) {
    case DISTRIBUTION_NORMAL:
        return gsl_cdf_gaussian_P(x - d->first, d->second);
    case DISTRIBUTION_LOGNORMAL:
        return gsl_cdf_lognormal_P(x, log(d->first), d->second);
    case DISTRIBUTION_PARETO:
        return x < d->first ? 0 : 1 - pow(d->first / x, d->second);
    case DISTRIBUTION_GPD:
        return gpd_below(d, x);
    case DISTRIBUTION_GEV:
        return gev_below(d, x);
    default:
        fail_msg("no distribution function for %s", distribution_name(d->kind));
        return NAN;
    }
}

// Draws, and holds the sample against the distribution function (Kolmogorov and Smirnov; what is
// cut off at 0 has its whole weight there), the quantiles against its inverse, and the mean.
static void check_against_theory(struct distribution distribution)
{
    uint64_t random = 5;
    double *values = malloc(SAMPLES * sizeof *values), sum = 0, squares = 0, worst = 0;
    assert_non_null(values);
    for (size_t i = 0; i < SAMPLES; i++) {
        values[i] = distribution_sample(&distribution, &random);
        assert_true(values[i] >= 0);
        sum += values[i];
    }
    double mean = sum / SAMPLES;
    for (size_t i = 0; i < SAMPLES; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    quantile_sort(values, SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++)
        if (values[i] > 0)
            worst = fmax(worst, fabs(fraction_below(&distribution, values[i]) -
                                     ((double)i + 0.5) / SAMPLES));
    assert_true(worst < 1.95 / sqrt(SAMPLES));
    double deviation = sqrt(squares / SAMPLES), expected = distribution_mean(&distribution);
    assert_true(fabs(mean - expected) < 5 * deviation / sqrt(SAMPLES));
    for (unsigned i = 1; i < 10000; i++) {
        double p = i / 10000.0, x = distribution_quantile(&distribution, p);
        if (x > 0)
            assert_true(fabs(fraction_below(&distribution, x) - p) < 1e-9);
        else
            assert_true(fraction_below(&distribution, 0) >= p - 1e-9);
    }
    free(values);
}

static void continuous_ones_are_as_theory_says(void **state)
{
    (void)state;
    static const struct distribution all[] = {
        {.kind = DISTRIBUTION_NORMAL, .first = 100, .second = 15},
        {.kind = DISTRIBUTION_NORMAL, .first = 10, .second = 20}, // a third of it cut off
        {.kind = DISTRIBUTION_LOGNORMAL, .first = 50, .second = 0.7},
        {.kind = DISTRIBUTION_PARETO, .first = 3, .second = 4},
        {.kind = DISTRIBUTION_GPD, .first = 0, .second = 214.476, .third = 0.348238}, // ETC values
        {.kind = DISTRIBUTION_GPD, .first = 0, .second = 16.0292, .third = 0.154971}, // ETC gaps
        {.kind = DISTRIBUTION_GPD, .first = 5, .second = 2, .third = 0},              // exponential
        {.kind = DISTRIBUTION_GPD, .first = 5, .second = 2, .third = -0.5},           // bounded
        {.kind = DISTRIBUTION_GEV,
         .first = 30.7984,
         .second = 8.20449,
         .third = 0.078688},                                                 // ETC keys
        {.kind = DISTRIBUTION_GEV, .first = 30, .second = 8, .third = 0},    // Gumbel
        {.kind = DISTRIBUTION_GEV, .first = 30, .second = 8, .third = -0.3}, // Weibull
        {.kind = DISTRIBUTION_GEV, .first = 1, .second = 5, .third = -0.2},  // much cut off
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_against_theory(all[i]);
}

static void means_without_end_are_infinite(void **state)
{
    (void)state;
    static const struct distribution all[] = {
        {.kind = DISTRIBUTION_PARETO, .first = 3, .second = 1},
        {.kind = DISTRIBUTION_GPD, .first = 0, .second = 1, .third = 1},
        {.kind = DISTRIBUTION_GEV, .first = 0, .second = 1, .third = 1.5}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_true(isinf(distribution_mean(&all[i])));
}

static void bimodal_has_two_values(void **state)
{
    (void)state;
    const struct distribution distribution = {
        .kind = DISTRIBUTION_BIMODAL, .first = 10, .second = 500, .third = 0.02};
    uint64_t random = 9;
    size_t rare = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        double value = distribution_sample(&distribution, &random);
        assert_true(value == 10 || value == 500);
        rare += value == 500;
    }
    assert_true(fabs((double)rare / SAMPLES - 0.02) < 4 * sqrt(0.02 * 0.98 / SAMPLES));
    assert_true(fabs(distribution_mean(&distribution) - 19.8) < 1e-9);
    assert_true(distribution_quantile(&distribution, 0.979) == 10);
    assert_true(distribution_quantile(&distribution, 0.981) == 500);
}

// --- tables --------------------------------------------------------------------------------------

static int load_table(const char *text, struct distribution *distribution, struct error *err)
{
    char path[] = "/tmp/test-distribution-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int result = distribution_load(path, distribution, err);
    if (result < 0) // the name is not the same twice: compare what follows it
        memmove(err->text, err->text + strlen(path), strlen(err->text + strlen(path)) + 1);
    unlink(path);
    return result;
}

static void tables_are_drawn_by_weight(void **state)
{
    (void)state;
    struct distribution distribution;
    struct error err = {0};
    assert_int_equal(load_table("# size,count\n30, 1\n\n10,2\n20,1\n5,0\n", &distribution, &err),
                     0);
    assert_true(distribution_mean(&distribution) == 17.5);
    assert_true(distribution_quantile(&distribution, 0) == 10);
    assert_true(distribution_quantile(&distribution, 0.49) == 10);
    assert_true(distribution_quantile(&distribution, 0.51) == 20);
    assert_true(distribution_quantile(&distribution, 0.76) == 30);
    assert_true(distribution_quantile(&distribution, 1 - 0x1p-53) == 30);
    uint64_t random = 2;
    size_t tens = 0;
    for (size_t i = 0; i < SAMPLES; i++)
        tens += distribution_sample(&distribution, &random) == 10;
    assert_true(fabs((double)tens / SAMPLES - 0.5) < 4 * sqrt(0.25 / SAMPLES));
    distribution_free(&distribution);
    assert_null(distribution.table);
    assert_int_equal(load_table("\xef\xbb\xbf" // as spreadsheets begin UTF-8
                                "30,1\n",
                                &distribution, &err),
                     0);
    distribution_free(&distribution);
}

static void bad_tables_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {{"1\nx\n", ":2: not a value"},   {"1,2,3\n", ":1: not a value"},
                 {"1\n-2\n", ":2: not a value"},  {"nan\n", ":1: not a value"},
                 {"", ": there must be a value"}, {"7,0\n", ": there must be a value"},
                 {"1;2\n", ":1: not a value"},    {"1,\n", ":1: not a value"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct distribution distribution;
        struct error err = {0};
        assert_int_equal(load_table(cases[i].text, &distribution, &err), -ERROR_INPUT);
        assert_int_equal(strncmp(err.text, cases[i].said, strlen(cases[i].said)), 0);
    }
    struct distribution none;
    struct error err = {0};
    assert_int_equal(distribution_load("/nonexistent.csv", &none, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "/nonexistent.csv"));
    assert_int_equal(distribution_load("/dev/zero", &none, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "no regular file"));
}

static void fixed_is_fixed(void **state)
{
    (void)state;
    const struct distribution distribution = {.kind = DISTRIBUTION_FIXED, .first = 31};
    uint64_t random = 1;
    assert_true(distribution_sample(&distribution, &random) == 31);
    assert_true(distribution_quantile(&distribution, 0.99) == 31);
    assert_true(distribution_mean(&distribution) == 31);
}

// Chi-square over all ranks of a small range, where every probability is known exactly.
static void check_ranks(struct popularity popularity, uint64_t count)
{
    uint64_t random = 3;
    struct rank_sampler sampler;
    rank_sampler_init(&sampler, &popularity, count);
    uint64_t *seen = calloc(count, sizeof *seen);
    assert_non_null(seen);
    for (size_t i = 0; i < SAMPLES; i++) {
        uint64_t rank = rank_sample(&sampler, &random);
        assert_true(rank < count);
        seen[rank]++;
    }
    double statistic = 0;
    for (uint64_t rank = 0; rank < count; rank++) {
        double expected = SAMPLES * popularity_probability(&popularity, count, rank);
        statistic += ((double)seen[rank] - expected) * ((double)seen[rank] - expected) / expected;
    }
    if (count > 1)
        assert_true(gsl_cdf_chisq_Q(statistic, (double)count - 1) > 0.001);
    free(seen);
}

static void ranks_have_their_probabilities(void **state)
{
    (void)state;
    static const double exponents[] = {0.01, 0.5, 0.8, 0.99, 1, 1.01, 1.5, 1.99};
    static const uint64_t counts[] = {1, 2, 3, 10, 100};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        check_ranks((struct popularity){POPULARITY_UNIFORM, 0}, counts[i]);
        for (size_t j = 0; j < sizeof exponents / sizeof *exponents; j++)
            check_ranks((struct popularity){POPULARITY_ZIPF, exponents[j]}, counts[i]);
    }
}

// A billion keys: the share of the first thousand must be what the sums say.
static void zipf_reaches_a_billion(void **state)
{
    (void)state;
    const uint64_t count = 1000000000;
    const double s = 0.99;
    uint64_t random = 11;
    struct rank_sampler sampler;
    rank_sampler_init(&sampler, &(struct popularity){POPULARITY_ZIPF, s}, count);
    // Euler and Maclaurin: the sum from 1001 on is the integral, and half of its first term less.
    double head = 0, tail = 0;
    for (uint64_t k = 1000; k > 0; k--)
        head += pow((double)k, -s);
    tail = (pow(1e9, 1 - s) - pow(1000, 1 - s)) / (1 - s) - pow(1000, -s) / 2;
    size_t in_head = 0, upper_half = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        uint64_t rank = rank_sample(&sampler, &random);
        assert_true(rank < count);
        in_head += rank < 1000;
        upper_half += rank >= count / 2;
    }
    double share = head / (head + tail);
    assert_true(fabs((double)in_head / SAMPLES - share) < 4 * sqrt(share * (1 - share) / SAMPLES));
    assert_true(upper_half > 0); // the far end is reached
}

// The largest size is that of the largest fraction, so no quantile may lie below an earlier one.
static void quantiles_ascend(void **state)
{
    (void)state;
    static const struct distribution some[] = {
        {.kind = DISTRIBUTION_BIMODAL, .first = 10, .second = 200000, .third = 0.3},
        {.kind = DISTRIBUTION_BIMODAL, .first = 200000, .second = 10, .third = 0.3},
        {.kind = DISTRIBUTION_BIMODAL, .first = 200000, .second = 10, .third = 1},
        {.kind = DISTRIBUTION_BIMODAL, .first = 200000, .second = 10, .third = 0},
        {.kind = DISTRIBUTION_UNIFORM, .first = 1, .second = 9},
        {.kind = DISTRIBUTION_GPD, .first = 0, .second = 214, .third = 0.35},
        {.kind = DISTRIBUTION_GEV, .first = 30, .second = 8, .third = 0.08},
        {.kind = DISTRIBUTION_GEV, .first = 30, .second = 8, .third = -0.5},
    };
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        double before = distribution_quantile(&some[k], 0);
        for (int i = 1; i < 1000; i++) {
            const double value = distribution_quantile(&some[k], i / 1000.0);
            assert_true(value >= before);
            before = value;
        }
    }
    static const double share_of_10[] = {0.7, 0.3}; // of the first two
    for (int i = 0; i < 2; i++) {
        assert_true(distribution_quantile(&some[i], share_of_10[i] - 0.01) == 10);
        assert_true(distribution_quantile(&some[i], share_of_10[i] + 0.01) == 200000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(continuous_ones_are_as_theory_says),
        cmocka_unit_test(means_without_end_are_infinite),
        cmocka_unit_test(bimodal_has_two_values),
        cmocka_unit_test(tables_are_drawn_by_weight),
        cmocka_unit_test(bad_tables_are_refused),
        cmocka_unit_test(uniform_is_uniform),
        cmocka_unit_test(exponential_is_exponential),
        cmocka_unit_test(fixed_is_fixed),
        cmocka_unit_test(ranks_have_their_probabilities),
        cmocka_unit_test(quantiles_ascend),
        cmocka_unit_test(zipf_reaches_a_billion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
