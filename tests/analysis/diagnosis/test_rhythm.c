// SPDX-License-Identifier: MIT
//
// The shape in time of a cause: found where it has one of known truth, seen by the messages that
// happen to meet it; and next to never in instants without one.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/diagnosis/rhythm.h"

#define WINDOW_NS 10000000000LL
#define BEGIN_NS  5000000000LL
enum { MOST = 20000 };

static uint64_t random_state;
static struct rhythm_message messages[MOST];
static size_t count;

static double uniform(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

static void begin(uint64_t seed)
{
    random_state = seed * 2654435761u + 88172645463325252u;
    count = 0;
}

// Something holds the server up for `length` at `at`; messages come at a mean distance of `gap` and
// wait for its end.
static void hold_up(double at, double length, double gap)
{
    for (double t = at - gap * log(uniform()); t < at + length && count < MOST;
         t -= gap * log(uniform()))
        messages[count++] = (struct rhythm_message){BEGIN_NS + (int64_t)t,
                                                    BEGIN_NS + (int64_t)(at + length + 50e3)};
}

static struct rhythm find(void)
{
    struct rhythm rhythm;
    assert_int_equal(rhythm_find(&rhythm, messages, count, BEGIN_NS, BEGIN_NS + WINDOW_NS), 0);
    return rhythm;
}

static void periods(void **state)
{
    (void)state;
    static const struct {
        double period, length, gap, jitter;
    } cases[] = {
        {1e9, 5e6, 0.2e6, 1e6},    // each second, a collection of 5 ms
        {1e9, 200e3, 0.1e6, 10e3}, // a short one
        {20e6, 1e6, 0.2e6, 0.1e6}, // each 20 ms
        {20e6, 1e6, 3e6, 0.1e6},   // met by a quarter of them only
        {4e6, 50e3, 1e6, 5e3},     // a timer tick that few messages meet
        {100e6, 10e6, 1e6, 5e6},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        begin(c + 1);
        for (double at = cases[c].period / 3; at < WINDOW_NS; at += cases[c].period)
            hold_up(at + cases[c].jitter * (uniform() - 0.5), cases[c].length, cases[c].gap);
        struct rhythm rhythm = find();
        assert_int_equal(rhythm.shape, RHYTHM_PERIODIC);
        if (fabs(rhythm.period_ns / cases[c].period - 1) > 0.01)
            fail_msg("case %zu: a period of %g ns, not %g", c, rhythm.period_ns, cases[c].period);
        assert_true(rhythm.share > 0.8);
    }
}

// A timer that is set anew each time.
static void wandering_period(void **state)
{
    (void)state;
    char words[100];
    begin(7);
    for (double at = 0; at < WINDOW_NS; at += 50e6 + 4e6 * (uniform() - 0.5))
        hold_up(at, 2e6, 0.3e6);
    struct rhythm rhythm = find();
    assert_int_equal(rhythm.shape, RHYTHM_PERIODIC);
    assert_true(fabs(rhythm.period_ns / 50e6 - 1) < 0.02);
    assert_non_null(strstr(rhythm_words(&rhythm, BEGIN_NS, words, sizeof words), "every 5"));
}

static void a_stretch_of_the_window(void **state)
{
    (void)state;
    char words[100];
    begin(8);
    for (int i = 0; i < 40; i++)
        hold_up(4.2e9 + 0.4e9 * uniform(), 0.5e6, 0.2e6);
    for (int i = 0; i < 4; i++)
        hold_up(WINDOW_NS * uniform(), 0.5e6, 0.2e6);
    struct rhythm rhythm = find();
    assert_int_equal(rhythm.shape, RHYTHM_STRETCH);
    assert_true(rhythm.share > 0.75);
    assert_true(rhythm.from_ns - BEGIN_NS > 4.1e9 && rhythm.to_ns - BEGIN_NS < 4.7e9);
    assert_non_null(strstr(rhythm_words(&rhythm, BEGIN_NS, words, sizeof words), "from 4.2"));
}

static void a_trend(void **state)
{
    (void)state;
    begin(9);
    for (int i = 0; i < 300; i++)
        hold_up(WINDOW_NS * sqrt(uniform()), 0.2e6, 0.1e6);
    assert_int_equal(find().shape, RHYTHM_RISING);
    begin(10);
    for (int i = 0; i < 300; i++)
        hold_up(WINDOW_NS * (1 - sqrt(uniform())), 0.2e6, 0.1e6);
    assert_int_equal(find().shape, RHYTHM_FALLING);
}

// Poisson instants, of different number and length: dense ones overlap, which spaces them.
static void next_to_never_by_chance(void **state)
{
    (void)state;
    static const struct {
        int times;
        double length, gap;
    } cases[] = {{8, 1e6, 0.2e6},   {20, 0.2e6, 0.1e6}, {60, 1e6, 0.2e6},    {60, 20e6, 1e6},
                 {300, 1e6, 0.3e6}, {300, 20e6, 2e6},   {1500, 0.3e6, 0.3e6}};
    enum { RUNS = 60 };
    unsigned named[5] = {0}, wrong = 0, runs = 0;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (uint64_t seed = 0; seed < RUNS; seed++, runs++) {
            begin(1000 * (c + 1) + seed);
            for (int i = 0; i < cases[c].times; i++)
                hold_up(WINDOW_NS * uniform(), cases[c].length, cases[c].gap);
            enum rhythm_shape shape = find().shape;
            named[shape]++;
            wrong += shape != RHYTHM_NONE;
        }
    printf("of %u runs of Poisson instants: %u periodic, %u stretches, %u trends\n", runs,
           named[RHYTHM_PERIODIC], named[RHYTHM_STRETCH],
           named[RHYTHM_RISING] + named[RHYTHM_FALLING]);
    assert_true(wrong <= runs / 100);
}

// Clumps of instants at random places are no period.
static void clumps_are_no_period(void **state)
{
    (void)state;
    enum { RUNS = 100 };
    unsigned periodic = 0;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        begin(50000 + seed);
        for (int clump = 0; clump < 6; clump++) {
            double at = (WINDOW_NS - 1e8) * uniform();
            for (int i = 0; i < 20; i++)
                hold_up(at + 50e6 * uniform(), 0.3e6, 0.1e6);
        }
        periodic += find().shape == RHYTHM_PERIODIC;
    }
    printf("of %d runs of six clumps: %u periodic\n", RUNS, periodic);
    assert_true(periodic <= 1);
}

static void too_few_to_say(void **state)
{
    (void)state;
    begin(11);
    assert_int_equal(find().shape, RHYTHM_NONE);
    for (int i = 0; i < 5; i++)
        hold_up(1e9 * i, 1e6, 0.1e6);
    assert_int_equal(find().shape, RHYTHM_NONE);
    begin(12);
    messages[count++] = (struct rhythm_message){BEGIN_NS, BEGIN_NS + WINDOW_NS};
    for (int i = 0; i < 50; i++)
        hold_up(0.1e9 * i, 1e6, 0.1e6);
    assert_int_equal(find().shape, RHYTHM_NONE); // all overlap one
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(periods),
        cmocka_unit_test(wandering_period),
        cmocka_unit_test(a_stretch_of_the_window),
        cmocka_unit_test(a_trend),
        cmocka_unit_test(next_to_never_by_chance),
        cmocka_unit_test(clumps_are_no_period),
        cmocka_unit_test(too_few_to_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
