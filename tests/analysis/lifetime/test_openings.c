// SPDX-License-Identifier: MIT
//
// When the connections of a load were being opened again: the one that took a message, or all that
// its thread has.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/lifetime/openings.h"

enum { UNIT = 100000, BEGIN_NS = 1000 };

static int64_t same_time(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context, (void)clock;
    return (int64_t)value;
}

static void build(struct openings *openings, const struct connection *connections, size_t count)
{
    const struct time_source clock = {.convert = same_time};
    assert_int_equal(openings_build(openings, connections, count, &clock, BEGIN_NS), 0);
}

static void expect(const struct openings *openings, uint32_t connection, int64_t from, int64_t to,
                   int64_t begin, int64_t end)
{
    const struct lifetime life = {.connection = connection};
    struct opening found;
    assert_true(opening_within(openings, &life, from * UNIT, to * UNIT, &found));
    assert_int_equal(found.begin_ns, begin * UNIT);
    assert_int_equal(found.end_ns, end * UNIT);
}

static void expect_none(const struct openings *openings, uint32_t connection, int64_t from,
                        int64_t to)
{
    const struct lifetime life = {.connection = connection};
    struct opening found;
    assert_false(opening_within(openings, &life, from * UNIT, to * UNIT, &found));
}

// Two connections of thread 7 and one of thread 8. Both of the first end and are opened again, at
// [10, 30) and [20, 40); then one of them once more, in no time.
static const struct connection loads[] = {
    {.process = 7, .opened_time = 100},
    {.process = 7, .opened_time = 200},
    {.process = 8, .opened_time = 300},
    {.process = 7, .opened_time = 30 * UNIT, .opening_100us = 20},
    {.process = 7, .opened_time = 40 * UNIT, .opening_100us = 20},
    {.process = 7, .opened_time = 50 * UNIT},
};

static void its_own_connection_counts(void **state)
{
    struct openings openings;
    (void)state;
    build(&openings, loads, sizeof loads / sizeof *loads);
    expect(&openings, 3, 5, 45, 10, 30);
    expect(&openings, 3, 15, 25, 15, 25);
    expect(&openings, 4, 30, 100, 30, 40);
    expect_none(&openings, 3, 30, 45);
    expect_none(&openings, 2, 5, 45);
    openings_free(&openings);
}

// One that was sent on a connection of which the opening took no time.
static void all_of_a_thread_count_for_each(void **state)
{
    struct openings openings;
    (void)state;
    build(&openings, loads, sizeof loads / sizeof *loads);
    assert_int_equal(openings.all.count, 1);
    expect(&openings, 5, 5, 45, 20, 30);
    expect(&openings, 5, 25, 45, 25, 30);
    expect_none(&openings, 5, 30, 45);
    expect_none(&openings, 5, 5, 20);
    openings_free(&openings);
}

static void nothing_is_known_of_nothing(void **state)
{
    struct openings openings;
    (void)state;
    build(&openings, NULL, 0);
    expect_none(&openings, 0, 0, 100);
    expect_none(NULL, 0, 0, 100);
    openings_free(&openings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_own_connection_counts),
        cmocka_unit_test(all_of_a_thread_count_for_each),
        cmocka_unit_test(nothing_is_known_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
