// SPDX-License-Identifier: MIT
//
// The schedule's statistics against those of the process it claims to be, with fixed seeds.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <gsl/gsl_cdf.h>

#include "base/quantile.h"
#include "loadgen/engine/schedule.h"
#include "workloads/distribution_text.h"

static const double rate = 50000;
static const uint64_t duration_ns = 4000000000;

static void draw(enum distribution_kind kind, uint64_t seed, const struct workload *workload,
                 struct schedule *schedule)
{
    struct error err;
    assert_int_equal(schedule_draw(workload, &(struct distribution){.kind = kind, .first = 1}, rate,
                                   duration_ns, seed, schedule, &err),
                     0);
}

static void arrivals_are_poisson(void **state)
{
    (void)state;
    struct workload workload;
    struct schedule schedule;
    workload_defaults(&workload);
    draw(DISTRIBUTION_EXPONENTIAL, 1, &workload, &schedule);
    double expected = rate * (double)duration_ns / 1e9, mean_ns = 1e9 / rate;
    assert_true(fabs((double)schedule.count - expected) < 4 * sqrt(expected));
    double *gaps = malloc(schedule.count * sizeof *gaps), sum = 0, squares = 0, lag = 0;
    assert_non_null(gaps);
    for (size_t i = 0; i < schedule.count; i++) {
        assert_true(schedule.items[i].offset_ns < duration_ns);
        assert_true(i == 0 || schedule.items[i].offset_ns >= schedule.items[i - 1].offset_ns);
        gaps[i] = (double)(schedule.items[i].offset_ns - (i ? schedule.items[i - 1].offset_ns : 0));
        sum += gaps[i];
    }
    double n = (double)schedule.count, mean = sum / n;
    for (size_t i = 0; i < schedule.count; i++) {
        squares += (gaps[i] - mean) * (gaps[i] - mean);
        lag += i ? (gaps[i] - mean) * (gaps[i - 1] - mean) : 0;
    }
    assert_true(fabs(mean / mean_ns - 1) < 4 / sqrt(n));
    assert_true(fabs(sqrt(squares / n) / mean - 1) < 4 * sqrt(2 / n)); // coefficient of variation
    assert_true(fabs(lag / squares) < 4 / sqrt(n));                    // neighbours independent
    quantile_sort(gaps, schedule.count);
    double distance = 0;
    for (size_t i = 0; i < schedule.count; i++)
        distance =
            fmax(distance, fabs(gsl_cdf_exponential_P(gaps[i], mean_ns) - ((double)i + 0.5) / n));
    assert_true(distance < 1.95 / sqrt(n)); // Kolmogorov-Smirnov, one seed in a thousand
    free(gaps);
    schedule_free(&schedule);
}

static void fixed_arrivals_are_even(void **state)
{
    (void)state;
    struct workload workload;
    struct schedule schedule;
    workload_defaults(&workload);
    draw(DISTRIBUTION_FIXED, 1, &workload, &schedule);
    assert_true(schedule.count == 199999 || schedule.count == 200000);
    for (size_t i = 1; i < schedule.count; i++) {
        uint64_t gap = schedule.items[i].offset_ns - schedule.items[i - 1].offset_ns;
        assert_true(gap >= 19999 && gap <= 20001);
    }
    schedule_free(&schedule);
}

// Gaps of any shape come at the asked rate, with the shape's own coefficient of variation.
static void any_shape_is_scaled_to_the_rate(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double variation;
    } shapes[] = {
        {"uniform", 0.57735},                // 1 / sqrt(3)
        {"lognormal:7,0.5", 0.53294},        // sqrt(exp(s^2) - 1)
        {"gpd:0,16.0292,0.154971", 1.20373}, // 1 / sqrt(1 - 2 shape)
        {"normal:4,1", 0.25},
        {"bimodal:1,9,0.5", 0.8},
    };
    struct workload workload;
    workload_defaults(&workload);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        struct distribution gaps;
        struct schedule schedule;
        struct error err = {0};
        assert_int_equal(arrivals_parse(shapes[k].text, &gaps, &err), 0);
        assert_int_equal(schedule_draw(&workload, &gaps, rate, duration_ns, 3, &schedule, &err), 0);
        double n = (double)schedule.count, expected = rate * (double)duration_ns / 1e9, squares = 0;
        assert_true(fabs(n - expected) < 5 * shapes[k].variation * sqrt(expected));
        for (size_t i = 1; i < schedule.count; i++) {
            double gap = (double)(schedule.items[i].offset_ns - schedule.items[i - 1].offset_ns);
            squares += (gap * rate / 1e9 - 1) * (gap * rate / 1e9 - 1);
        }
        assert_true(fabs(sqrt(squares / n) / shapes[k].variation - 1) < 0.03);
        schedule_free(&schedule);
    }
}

// The share of requests in each tenth of the run, against the pattern's own.
static void patterns_are_followed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double tenths[10]; // the mean factor in each
    } cases[] = {
        {"step:0.5,2", {0.5, 0.5, 0.5, 0.5, 0.5, 2, 2, 2, 2, 2}},
        {"step:0,1,0,3,1", {0, 0, 1, 1, 0, 0, 3, 3, 1, 1}},
        {"ramp:0.5,1.5", {0.55, 0.65, 0.75, 0.85, 0.95, 1.05, 1.15, 1.25, 1.35, 1.45}},
        // 1 + A (cos(2 pi i / 10) - cos(2 pi (i + 1) / 10)) 10 / (2 pi), A = 0.5
        {"diurnal:0.5",
         {1.151981, 1.397887, 1.491812, 1.397887, 1.151981, 0.848019, 0.602113, 0.508188, 0.602113,
          0.848019}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct workload workload;
        struct schedule schedule;
        struct error err = {0};
        size_t seen[10] = {0};
        workload_defaults(&workload);
        assert_int_equal(rate_pattern_parse(cases[k].text, &workload.pattern, &err), 0);
        draw(DISTRIBUTION_EXPONENTIAL, 4, &workload, &schedule);
        for (size_t i = 0; i < schedule.count; i++) {
            assert_true(schedule.items[i].offset_ns < duration_ns);
            assert_true(i == 0 || schedule.items[i].offset_ns >= schedule.items[i - 1].offset_ns);
            seen[schedule.items[i].offset_ns * 10 / duration_ns]++;
        }
        for (unsigned i = 0; i < 10; i++) {
            double expected = cases[k].tenths[i] * rate * (double)duration_ns / 1e10;
            assert_true(fabs((double)seen[i] - expected) <= 4.5 * sqrt(expected));
        }
        schedule_free(&schedule);
    }
}

static void seeds_repeat_and_differ(void **state)
{
    (void)state;
    struct workload workload;
    struct schedule first, again, other, mixed;
    workload_defaults(&workload);
    draw(DISTRIBUTION_EXPONENTIAL, 42, &workload, &first);
    draw(DISTRIBUTION_EXPONENTIAL, 42, &workload, &again);
    draw(DISTRIBUTION_EXPONENTIAL, 43, &workload, &other);
    workload.mix[WORKLOAD_SET] = 90;
    draw(DISTRIBUTION_EXPONENTIAL, 42, &workload, &mixed);
    assert_int_equal(first.count, again.count);
    assert_int_equal(first.count, mixed.count); // another mix, the same instants
    size_t same = 0;
    for (size_t i = 0; i < first.count; i++) {
        assert_int_equal(first.items[i].offset_ns, again.items[i].offset_ns);
        assert_int_equal(first.items[i].key, again.items[i].key);
        assert_int_equal(first.items[i].operation, again.items[i].operation);
        assert_int_equal(first.items[i].offset_ns, mixed.items[i].offset_ns);
        same += i < other.count && first.items[i].offset_ns == other.items[i].offset_ns;
    }
    assert_true(same < first.count / 100);
    schedule_free(&first);
    schedule_free(&again);
    schedule_free(&other);
    schedule_free(&mixed);
}

static void mix_and_keys_are_kept(void **state)
{
    (void)state;
    struct workload workload;
    struct schedule schedule;
    workload_defaults(&workload);
    workload.key_count = 100;
    workload.popularity = (struct popularity){POPULARITY_ZIPF, 0.99};
    draw(DISTRIBUTION_EXPONENTIAL, 5, &workload, &schedule);
    size_t sets = 0, first_key = 0;
    for (size_t i = 0; i < schedule.count; i++) {
        assert_true(schedule.items[i].key < 100);
        sets += schedule.items[i].operation == WORKLOAD_SET;
        first_key += schedule.items[i].key == 0;
    }
    double n = (double)schedule.count, p = popularity_probability(&workload.popularity, 100, 0);
    assert_true(fabs((double)sets / n - 0.1) < 4 * sqrt(0.09 / n));
    assert_true(fabs((double)first_key / n - p) < 4 * sqrt(p * (1 - p) / n));
    schedule_free(&schedule);
}

static void the_impossible_is_refused(void **state)
{
    (void)state;
    struct workload workload;
    struct schedule schedule;
    struct error err = {0};
    workload_defaults(&workload);
    assert_int_equal(schedule_draw(&workload,
                                   &(struct distribution){.kind = DISTRIBUTION_FIXED, .first = 1},
                                   1e9, 10000000000u, 1, &schedule, &err),
                     -ERROR_INPUT);
    assert_int_equal(schedule_draw(&workload,
                                   &(struct distribution){.kind = DISTRIBUTION_FIXED, .first = 1},
                                   0, 1000, 1, &schedule, &err),
                     -ERROR_INPUT);
}

// Drawn in blocks of any size, as a long load does it, it is the one that is drawn at once; also
// where the rate changes.
static void one_by_one_it_is_the_same(void **state)
{
    (void)state;
    for (unsigned changing = 0; changing < 2; changing++) {
        struct workload workload;
        struct schedule schedule;
        struct schedule_drawer *drawer;
        struct scheduled_request request;
        struct error err;
        size_t count = 0;
        workload_defaults(&workload);
        workload.mix[WORKLOAD_SET] = 0.3;
        if (changing)
            workload.pattern =
                (struct rate_pattern){.kind = PATTERN_STEP, .count = 3, .values = {0.5, 2, 1}};
        draw(DISTRIBUTION_EXPONENTIAL, 11, &workload, &schedule);
        assert_int_equal(schedule_drawer_open(
                             &workload,
                             &(struct distribution){.kind = DISTRIBUTION_EXPONENTIAL, .first = 1},
                             rate, duration_ns, 11, &drawer, &err),
                         0);
        for (; schedule_drawer_next(drawer, &request); count++) {
            assert_true(count < schedule.count);
            assert_int_equal(request.offset_ns, schedule.items[count].offset_ns);
            assert_int_equal(request.key, schedule.items[count].key);
            assert_int_equal(request.operation, schedule.items[count].operation);
        }
        assert_int_equal(count, schedule.count);
        assert_false(schedule_drawer_next(drawer, &request));
        schedule_drawer_close(drawer);
        schedule_free(&schedule);
    }
}

// The instants stay those of a plain load; each is that of so many requests, with own keys.
static void a_fanout_shares_instants(void **state)
{
    (void)state;
    enum { FANOUT = 7 };
    struct workload workload;
    struct schedule plain, fanned;
    size_t alike = 0;
    workload_defaults(&workload);
    draw(DISTRIBUTION_EXPONENTIAL, 3, &workload, &plain);
    workload.fanout = FANOUT;
    draw(DISTRIBUTION_EXPONENTIAL, 3, &workload, &fanned);
    assert_int_equal(fanned.count, FANOUT * plain.count);
    for (size_t i = 0; i < fanned.count; i++) {
        assert_int_equal(fanned.items[i].offset_ns, plain.items[i / FANOUT].offset_ns);
        alike += i % FANOUT && fanned.items[i].key == fanned.items[i - 1].key;
    }
    assert_true((double)alike < 0.001 * (double)fanned.count); // of 100k keys
    schedule_free(&plain);
    schedule_free(&fanned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrivals_are_poisson),
        cmocka_unit_test(fixed_arrivals_are_even),
        cmocka_unit_test(any_shape_is_scaled_to_the_rate),
        cmocka_unit_test(patterns_are_followed),
        cmocka_unit_test(seeds_repeat_and_differ),
        cmocka_unit_test(mix_and_keys_are_kept),
        cmocka_unit_test(a_fanout_shares_instants),
        cmocka_unit_test(the_impossible_is_refused),
        cmocka_unit_test(one_by_one_it_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
