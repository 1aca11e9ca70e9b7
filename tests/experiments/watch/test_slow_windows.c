// SPDX-License-Identifier: MIT
//
// Which windows the flight recorder saves: one a stretch of slow requests, across the borders of
// intervals, and each answered request in one of them at most.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "experiments/watch/slow_windows.h"

enum { ABOVE_NS = 100, SEVERAL = 8 };

static void add(struct lifetime_array *lives, int64_t begin_ns, double latency_ns)
{
    struct lifetime life = {.latency_ns = latency_ns};
    life.stamp_ns[STAMP_INTENDED] = begin_ns;
    assert_int_equal(array_push(lives, life), 0);
}

static void nothing_slow_has_no_window(void **state)
{
    struct lifetime_array lives = {0};
    struct slow_windows windows = {0};
    int64_t ended = INT64_MIN;
    (void)state;
    add(&lives, 10, ABOVE_NS);
    add(&lives, 20, INFINITY);
    assert_int_equal(slow_windows_find(&lives, ABOVE_NS, 0, 1000, SEVERAL, &ended, &windows), 0);
    assert_int_equal(windows.count, 0);
    assert_true(ended == INT64_MIN);
    array_free(&lives);
}

// Of answers of which no more is known than of these lives the windows are the same.
static void answers_have_the_same(void **state)
{
    static const int64_t begin_and_latency[][2] = {
        {5000, 300}, {1000, 400}, {1300, 200}, {2000, 50}, {2500, 500}};
    struct lifetime_array lives = {0};
    struct answer_array answers = {0};
    struct slow_windows of_lives = {0}, of_answers = {0};
    int64_t ended[2] = {INT64_MIN, INT64_MIN};
    (void)state;
    for (size_t i = 0; i < sizeof begin_and_latency / sizeof *begin_and_latency; i++) {
        const int64_t begin = begin_and_latency[i][0], latency = begin_and_latency[i][1];
        add(&lives, begin, (double)latency);
        assert_int_equal(array_push(&answers, (struct answer){begin, begin + latency, 0}), 0);
    }
    assert_int_equal(slow_windows_find(&lives, ABOVE_NS, 0, 9000, SEVERAL, &ended[0], &of_lives),
                     0);
    assert_int_equal(
        slow_windows_of_answers(&answers, ABOVE_NS, 0, 9000, SEVERAL, &ended[1], &of_answers), 0);
    assert_int_equal(of_answers.count, of_lives.count);
    for (size_t i = 0; i < of_lives.count; i++) {
        const struct slow_window *one = &of_lives.items[i], *other = &of_answers.items[i];
        assert_true(one->from_ns == other->from_ns && one->until_ns == other->until_ns &&
                    one->slowest_ns == other->slowest_ns && one->stretches == other->stretches);
    }
    assert_int_equal(ended[0], ended[1]);
    array_free(&lives);
    array_free(&answers);
    array_free(&of_lives);
    array_free(&of_answers);
}

static void each_stretch_has_its_own(void **state)
{
    struct lifetime_array lives = {0};
    struct slow_windows windows = {0};
    int64_t ended = INT64_MIN;
    (void)state;
    add(&lives, 5000, 300); // the order of lives is that of requests, not of time
    add(&lives, 1000, 400); // until 1400
    add(&lives, 1300, 200); // until 1500: the same stretch
    add(&lives, 2000, 50);
    add(&lives, 2500, 500); // until 3000
    assert_int_equal(slow_windows_find(&lives, ABOVE_NS, 0, 9000, SEVERAL, &ended, &windows), 0);
    assert_int_equal(windows.count, 3);
    const struct slow_window expected[] = {
        {0, 2000, 400, 1, false}, {2000, 4000, 500, 1, false}, {4000, 9000, 300, 1, false}};
    for (size_t i = 0; i < windows.count; i++) {
        assert_int_equal(windows.items[i].from_ns, expected[i].from_ns);
        assert_int_equal(windows.items[i].until_ns, expected[i].until_ns);
        assert_true(windows.items[i].slowest_ns == expected[i].slowest_ns);
        assert_int_equal(windows.items[i].stretches, 1);
    }
    assert_int_equal(ended, 5300);
    array_free(&windows);
    array_free(&lives);
}

// A stall's last requests are answered when the next interval has begun.
static void a_stretch_over_the_border_is_one(void **state)
{
    struct lifetime_array before = {0}, after = {0};
    struct slow_windows windows = {0};
    int64_t ended = INT64_MIN;
    (void)state;
    add(&before, 800, 195); // until 995
    add(&after, 900, 150);  // until 1050
    assert_int_equal(slow_windows_find(&before, ABOVE_NS, 0, 1000, SEVERAL, &ended, &windows), 0);
    assert_int_equal(windows.count, 1);
    windows.count = 0;
    assert_int_equal(slow_windows_find(&after, ABOVE_NS, 1000, 2000, SEVERAL, &ended, &windows), 0);
    assert_int_equal(windows.count, 1);
    assert_true(windows.items[0].goes_on && windows.items[0].slowest_ns == 150);
    assert_int_equal(windows.items[0].from_ns, 1000);
    assert_int_equal(windows.items[0].until_ns, 2000);
    assert_int_equal(ended, 1050);
    windows.count = 0;
    // Another one in the same interval ends what goes on of the first.
    ended = 995;
    add(&after, 1450, 200);
    assert_int_equal(slow_windows_find(&after, ABOVE_NS, 1000, 2000, SEVERAL, &ended, &windows), 0);
    assert_int_equal(windows.count, 2);
    assert_true(windows.items[0].goes_on && !windows.items[1].goes_on);
    assert_int_equal(windows.items[0].until_ns, 1250);
    assert_int_equal(windows.items[1].from_ns, 1250);
    assert_true(windows.items[1].slowest_ns == 200);
    array_free(&windows);
    array_free(&before);
    array_free(&after);
}

static void too_many_share_the_last(void **state)
{
    struct lifetime_array lives = {0};
    struct slow_windows windows = {0};
    int64_t ended = INT64_MIN;
    (void)state;
    for (int i = 0; i < 5; i++)
        add(&lives, 1000 * i, 200 + i);
    assert_int_equal(slow_windows_find(&lives, ABOVE_NS, -1, 9000, 2, &ended, &windows), 0);
    assert_int_equal(windows.count, 2);
    assert_int_equal(windows.items[0].stretches, 1);
    assert_int_equal(windows.items[1].stretches, 4);
    assert_int_equal(windows.items[1].until_ns, 9000);
    assert_true(windows.items[1].slowest_ns == 204);
    array_free(&windows);
    array_free(&lives);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_slow_has_no_window),
        cmocka_unit_test(each_stretch_has_its_own),
        cmocka_unit_test(answers_have_the_same),
        cmocka_unit_test(a_stretch_over_the_border_is_one),
        cmocka_unit_test(too_many_share_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
