// SPDX-License-Identifier: MIT
//
// Two clocks whose relation is known exactly, and requests between them of all kinds: wherever a
// bound is given the truth lies within it, it is no wider than the network makes it, and steps are
// found.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <malloc.h>
#include <stdlib.h>
#include <cmocka.h>

#include "analysis/lifetime/clock_relation.h"

#define AHEAD_NS INT64_C(1234567890123456) // the server has been up for two weeks longer

struct clocks {
    double rate;             // the server's gain on the client
    double swing, period_ns; // the rate changes as a sine: its amplitude, and how long one takes
    int64_t step_at_ns, step_ns;
};

struct network {
    double to_server_ns, to_client_ns; // at least
    double queue_ns;                   // mean of what comes on top, exponential
    double service_ns;
};

struct truth {
    struct clocks clocks;
    uint64_t random;
    struct exchange *exchanges;
    size_t count;
};

static double uniform(struct truth *truth)
{
    truth->random ^= truth->random << 13;
    truth->random ^= truth->random >> 7;
    truth->random ^= truth->random << 17;
    return ((double)(truth->random >> 11) + 0.5) / 9007199254740992.0;
}

static double some(struct truth *truth, double mean)
{
    return -mean * log(uniform(truth));
}

// Server minus client when the client's clock shows t; AHEAD_NS left out.
static double offset_at(const struct clocks *clocks, double t)
{
    double bend = clocks->period_ns > 0 ? clocks->swing * clocks->period_ns / (2 * M_PI) *
                                              (1 - cos(2 * M_PI * t / clocks->period_ns))
                                        : 0;
    return clocks->rate * t + bend +
           (t >= (double)clocks->step_at_ns ? (double)clocks->step_ns : 0);
}

static int64_t server_time(const struct clocks *clocks, double t)
{
    return AHEAD_NS + (int64_t)llround(t + offset_at(clocks, t));
}

static void make(struct truth *truth, const struct network *network, size_t count, double gap_ns)
{
    truth->exchanges = malloc(count * sizeof *truth->exchanges);
    assert_non_null(truth->exchanges);
    truth->count = count;
    double t = 1e9;
    for (size_t i = 0; i < count; i++) {
        t += some(truth, gap_ns);
        double came = t + network->to_server_ns + some(truth, network->queue_ns);
        double replied = came + some(truth, network->service_ns);
        double back = replied + network->to_client_ns + some(truth, network->queue_ns);
        truth->exchanges[i] = (struct exchange){.left_ns = (int64_t)t,
                                                .came_ns = server_time(&truth->clocks, came),
                                                .replied_ns = server_time(&truth->clocks, replied),
                                                .back_ns = (int64_t)back};
    }
}

static struct clock_relation *relate(const struct truth *truth)
{
    struct clock_relation *relation = NULL;
    struct error err = {0};
    assert_int_equal(clock_relation_build(truth->exchanges, truth->count, 2, &relation, &err), 0);
    return relation;
}

struct score {
    double median_bound, worst_bound, worst_error; // of the known
    double unknown;                                // share of the instants
    size_t outside;                                // truths that lie beyond their bound
};

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static struct score score_of(const struct truth *truth, const struct clock_relation *relation)
{
    enum { INSTANTS = 4001 };
    static double bounds[INSTANTS];
    struct score score = {0};
    double first = (double)truth->exchanges[0].left_ns;
    double last = (double)truth->exchanges[truth->count - 1].back_ns;
    size_t known = 0;
    for (int i = 0; i < INSTANTS; i++) {
        double t = first + (last - first) * i / (INSTANTS - 1);
        struct clock_offset at = clock_relation_at(relation, (int64_t)t);
        double error = fabs((double)(at.ns - AHEAD_NS) - offset_at(&truth->clocks, floor(t)));
        if (!isfinite(at.bound_ns))
            continue;
        bounds[known++] = at.bound_ns;
        score.outside += error > at.bound_ns;
        score.worst_error = fmax(score.worst_error, error);
    }
    qsort(bounds, known, sizeof *bounds, compare_doubles);
    score.median_bound = known ? bounds[known / 2] : (double)INFINITY;
    score.worst_bound = known ? bounds[known - 1] : (double)INFINITY;
    score.unknown = 1 - (double)known / INSTANTS;
    return score;
}

static struct score try(struct truth *truth, const struct network *network, size_t count,
                        double gap_ns)
{
    make(truth, network, count, gap_ns);
    struct clock_relation *relation = relate(truth);
    struct score score = score_of(truth, relation);
    clock_relation_free(relation);
    free(truth->exchanges);
    return score;
}

static const struct network symmetric = {20e3, 20e3, 15e3, 30e3};

static void offset_and_drift_are_found(void **state)
{
    (void)state;
    struct truth truth = {.clocks = {.rate = 43e-6}, .random = 7};
    make(&truth, &symmetric, 20000, 250e3);
    struct clock_relation *relation = relate(&truth);
    struct score score = score_of(&truth, relation);
    assert_int_equal(score.outside, 0);
    assert_true(score.unknown == 0);
    // The shortest way there and back, halved, and a little.
    assert_true(score.median_bound > 20e3 && score.median_bound < 21e3);
    assert_true(score.worst_error < 2e3);
    assert_true(fabs(clock_relation_rate(relation) - 43e-6) < 1e-6);
    assert_int_equal(clock_relation_gaps(relation), 0);
    clock_relation_free(relation);
    free(truth.exchanges);
}

// One way 90 us longer than the other: no stamp shows that, and the bound says so.
static void asymmetry_is_within_the_bound(void **state)
{
    (void)state;
    const struct network networks[] = {{100e3, 10e3, 15e3, 30e3}, {10e3, 100e3, 15e3, 30e3}};
    for (int i = 0; i < 2; i++) {
        struct truth truth = {.clocks = {.rate = -12e-6}, .random = 11};
        struct score score = try(&truth, &networks[i], 20000, 250e3);
        assert_int_equal(score.outside, 0);
        assert_true(score.worst_error > 44e3);
        assert_true(score.median_bound > 54e3 && score.median_bound < 57e3);
    }
}

static void a_step_is_found(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        struct truth truth = {
            .clocks = {.rate = 5e-6, .step_at_ns = INT64_C(3123456789), .step_ns = sign * 1000000},
            .random = 13};
        make(&truth, &symmetric, 20000, 250e3);
        struct clock_relation *relation = relate(&truth);
        struct score score = score_of(&truth, relation);
        assert_int_equal(score.outside, 0);
        assert_int_equal(clock_relation_gaps(relation), 1);
        assert_true(score.unknown > 0 && score.unknown < 0.11);
        assert_true(!isfinite(clock_relation_at(relation, INT64_C(3123456789)).bound_ns));
        clock_relation_free(relation);
        free(truth.exchanges);
    }
}

// A stamp that cannot be, such as a retransmission's, costs its own stretch at most.
static void a_wrong_stamp_spoils_little(void **state)
{
    (void)state;
    struct truth truth = {.clocks = {.rate = 5e-6}, .random = 17};
    make(&truth, &symmetric, 20000, 250e3);
    truth.exchanges[9000].left_ns += 400000;
    struct clock_relation *relation = relate(&truth);
    struct score score = score_of(&truth, relation);
    assert_int_equal(score.outside, 0);
    assert_in_range(clock_relation_gaps(relation), 1, 2);
    assert_true(score.unknown < 0.25);
    clock_relation_free(relation);
    free(truth.exchanges);
}

static void few_requests_are_enough(void **state)
{
    (void)state;
    struct truth truth = {.clocks = {.rate = 30e-6}, .random = 19};
    struct score score = try(&truth, &symmetric, 1, 1e6);
    assert_int_equal(score.outside, 0);
    assert_true(score.worst_bound < 200e3);
    // Every 0.7 s one: the rate may be any that is allowed.
    score = try(&truth, &symmetric, 20, 700e6);
    assert_int_equal(score.outside, 0);
    struct clock_relation *relation = NULL;
    struct error err = {0};
    assert_true(clock_relation_build(NULL, 0, 2, &relation, &err) < 0);
    assert_null(relation);
}

// Two bursts, as damaged stamps have them: what is between them is unknown, and takes no memory.
static void what_lies_far_apart_costs_nothing(void **state)
{
    (void)state;
    enum { BURST = 20 };
    const int64_t apart_ns = INT64_C(1) << 61, gap_ns = 100000000, trip_ns = 10000;
    struct exchange exchanges[2 * BURST];
    struct clock_relation *relation;
    struct error err;
    for (int i = 0; i < 2 * BURST; i++) {
        const int64_t at_ns = i % BURST * gap_ns + i / BURST * apart_ns;
        exchanges[i] = (struct exchange){at_ns, at_ns + 500 + trip_ns / 2,
                                         at_ns + 500 + trip_ns / 2, at_ns + trip_ns};
    }
    const struct mallinfo2 before = mallinfo2();
    assert_int_equal(clock_relation_build(exchanges, 2 * BURST, 2, &relation, &err), 0);
    const struct mallinfo2 after = mallinfo2();
    assert_true(after.uordblks + after.hblkhd < before.uordblks + before.hblkhd + 100000);
    for (int i = 0; i < 2 * BURST; i++) {
        const struct clock_offset at = clock_relation_at(relation, exchanges[i].left_ns);
        // In some nanoseconds, which is what a double holds of such a time.
        assert_true(at.bound_ns < 2 * trip_ns && llabs(at.ns - 500) < trip_ns);
    }
    assert_true(isinf(clock_relation_at(relation, apart_ns / 2).bound_ns));
    assert_true(clock_relation_gaps(relation) > 1000000000);
    clock_relation_free(relation);
}

static void beyond_the_requests_the_bound_widens(void **state)
{
    (void)state;
    struct truth truth = {.clocks = {.rate = 200e-6}, .random = 23};
    make(&truth, &symmetric, 4000, 250e3);
    struct clock_relation *relation = relate(&truth);
    for (int i = -4; i <= 8; i++) {
        int64_t t = INT64_C(1000000000) * i;
        struct clock_offset at = clock_relation_at(relation, t);
        assert_true(fabs((double)(at.ns - AHEAD_NS) - offset_at(&truth.clocks, (double)t)) <=
                    at.bound_ns);
    }
    clock_relation_free(relation);
    free(truth.exchanges);
}

// Whatever the clocks and the network, as long as they keep to what the header asks for.
static void the_truth_is_always_within_the_bound(void **state)
{
    (void)state;
    struct truth draw = {.random = 29};
    for (int round = 0; round < 120; round++) {
        double period = 2e9 + 20e9 * uniform(&draw);
        // The fastest change of the rate, a second, is swing * 2 pi / period.
        double swing = CLOCK_RELATION_WANDER * period / 1e9 / (2 * M_PI) * uniform(&draw);
        struct truth truth = {.clocks = {.rate = 800e-6 * (uniform(&draw) - 0.5),
                                         .swing = swing,
                                         .period_ns = period},
                              .random = (uint64_t)(1e15 * uniform(&draw)) + 1};
        struct network network = {some(&draw, 50e3), some(&draw, 50e3), some(&draw, 30e3),
                                  some(&draw, 100e3)};
        if (round % 3 == 0) {
            truth.clocks.step_at_ns = INT64_C(1000000000) + (int64_t)(4e9 * uniform(&draw));
            truth.clocks.step_ns = (int64_t)((uniform(&draw) - 0.5) * 40e6);
            if (llabs(truth.clocks.step_ns) < 3000000)
                truth.clocks.step_ns = -3000000;
        }
        struct score score = try(&truth, &network, 4000, 200e3 + some(&draw, 1e6));
        assert_int_equal(score.outside, 0);
        assert_true(score.unknown < 0.65);
        if (truth.clocks.step_ns == 0)
            assert_true(score.unknown == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offset_and_drift_are_found),
        cmocka_unit_test(asymmetry_is_within_the_bound),
        cmocka_unit_test(a_step_is_found),
        cmocka_unit_test(a_wrong_stamp_spoils_little),
        cmocka_unit_test(few_requests_are_enough),
        cmocka_unit_test(beyond_the_requests_the_bound_widens),
        cmocka_unit_test(what_lies_far_apart_costs_nothing),
        cmocka_unit_test(the_truth_is_always_within_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
