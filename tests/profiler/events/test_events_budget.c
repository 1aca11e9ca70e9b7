// SPDX-License-Identifier: MIT
//
// What a capture does without, so that its programs take no more than they may: some of them in
// nine of ten segments, and the rest of a segment whose share is spent.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "profiler/events/events_budget.h"

static const uint64_t SEGMENT_NS = 1000000000, MANY = 10000;

static struct events_budget a_budget(double share)
{
    return (struct events_budget){.share = share, .segment_ns = SEGMENT_NS, .many = true};
}

// A segment in which all programs would take so much of a core. Whether it was sparing.
static bool segment(struct events_budget *budget, double all)
{
    const double recorded_ns = (double)SEGMENT_NS / 10;
    events_budget_measured(budget, (budget->sparing ? all / 3 : all) * recorded_ns, 0, 0);
    const bool sparing = budget->sparing;
    events_budget_next(budget, MANY, SEGMENT_NS / 10, SEGMENT_NS);
    return sparing;
}

// Whether it is not to be recorded on when so much was spent.
static bool is_spent(struct events_budget *budget, double ns)
{
    events_budget_measured(budget, ns, 0, 0);
    return events_budget_is_spent(budget, SEGMENT_NS / 2);
}

static void little_is_recorded_whole(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0.05);
    for (int i = 0; i < 30; i++) {
        assert_false(segment(&budget, 0.05));
        assert_false(events_budget_is_exceeded(&budget));
        assert_false(is_spent(&budget, 0.0499 * (double)SEGMENT_NS));
    }
}

static void every_tenth_segment_has_all_programs(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0.05);
    assert_false(segment(&budget, 0.06));
    for (int i = 0; i < 30; i++)
        assert_int_equal(segment(&budget, 0.06), i % 10 != 9);
}

static void it_ends_further_down(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0.06);
    segment(&budget, 0.07);
    assert_true(events_budget_is_exceeded(&budget));
    assert_true(segment(&budget, 0.05));
    assert_true(segment(&budget, 0.039));
    assert_false(segment(&budget, 0.05));
    assert_false(segment(&budget, 0.05));
}

// But for its first moments, in which nobody knows anything.
static void a_segment_ends_when_its_share_is_spent(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0.05);
    assert_false(is_spent(&budget, 0.0499 * (double)SEGMENT_NS));
    assert_true(is_spent(&budget, 0.0501 * (double)SEGMENT_NS));
    assert_false(events_budget_is_spent(&budget, BUDGET_LEAST_NS - 1));
    assert_true(events_budget_is_spent(&budget, BUDGET_LEAST_NS));
}

// It was noticed late, or there was so much that the segment was cut early.
static void what_was_taken_too_much_is_owed(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0.05);
    events_budget_measured(&budget, 50e6, 0, 0);
    events_budget_next(&budget, MANY, SEGMENT_NS / 10, SEGMENT_NS / 2); // twice the share
    assert_false(is_spent(&budget, 24.9e6));
    assert_true(is_spent(&budget, 25.1e6));
    events_budget_next(&budget, MANY, SEGMENT_NS / 20, SEGMENT_NS); // paid back
    assert_false(is_spent(&budget, 49.8e6));
    events_budget_measured(&budget, 1e9, 0, 0);
    events_budget_next(&budget, MANY, SEGMENT_NS, SEGMENT_NS);
    assert_true(is_spent(&budget, 0));
    events_budget_next(&budget, MANY, SEGMENT_NS / 20, SEGMENT_NS);
    assert_false(is_spent(&budget, 49.9e6)); // of much too much only a segment's
}

static void who_reads_the_records_counts(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0.05);
    events_budget_read(&budget, 100, 1000000); // files and the like: not by the record
    events_budget_measured(&budget, 10e6, 1000, 0);
    assert_false(events_budget_is_spent(&budget, SEGMENT_NS));
    events_budget_measured(&budget, 10e6, 100000, 0); // a guess has them at 0.4 us at the least
    assert_true(events_budget_is_spent(&budget, SEGMENT_NS));
    events_budget_read(&budget, 100000, 40100000);
    events_budget_measured(&budget, 10e6, 100000, 0);
    assert_true(events_budget_is_spent(&budget, SEGMENT_NS));
    events_budget_measured(&budget, 10e6, 90000, 0);
    assert_false(events_budget_is_spent(&budget, SEGMENT_NS));
}

static void of_few_requests_all_is_recorded(void **state)
{
    (void)state;
    struct events_budget budget = {.share = 0.05, .segment_ns = SEGMENT_NS};
    assert_false(is_spent(&budget, 2e9)); // nobody knows yet
    events_budget_next(&budget, BUDGET_LEAST_RATE, SEGMENT_NS, SEGMENT_NS);
    assert_false(budget.sparing);
    assert_false(is_spent(&budget, 2e9));
    events_budget_next(&budget, BUDGET_LEAST_RATE + 1, SEGMENT_NS, SEGMENT_NS);
    assert_true(budget.sparing);
    assert_true(is_spent(&budget, 2e9));
    events_budget_next(&budget, 0, SEGMENT_NS / 10, SEGMENT_NS); // a moment says nothing
    assert_true(is_spent(&budget, 2e9));
    for (int i = 0; i < 4; i++) { // but several do, together
        assert_true(is_spent(&budget, 2e9));
        events_budget_next(&budget, BUDGET_LEAST_RATE / 10, SEGMENT_NS / 10, SEGMENT_NS);
    }
    assert_false(budget.sparing);
    assert_false(is_spent(&budget, 2e9));
}

// That much was asked is known before the segment is over.
static void of_many_requests_it_is_known_as_they_come(void **state)
{
    (void)state;
    struct events_budget budget = {.share = 0.05, .segment_ns = 2 * SEGMENT_NS};
    events_budget_measured(&budget, 2e9, 0, 2 * BUDGET_LEAST_RATE);
    assert_false(events_budget_is_spent(&budget, BUDGET_LEAST_NS));
    events_budget_measured(&budget, 2e9, 0, 2 * BUDGET_LEAST_RATE + 1);
    assert_true(events_budget_is_spent(&budget, BUDGET_LEAST_NS));
}

static void what_it_takes_to_rest_is_spent(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0.05);
    assert_false(is_spent(&budget, 40e6));
    events_budget_switched(&budget, 10000000);
    assert_true(is_spent(&budget, 40e6));
    events_budget_next(&budget, MANY, SEGMENT_NS / 10, SEGMENT_NS);
    events_budget_switched(&budget, 20000000);
    assert_false(is_spent(&budget, 29e6));
    assert_true(is_spent(&budget, 30e6));
}

static void without_a_share_all_is_recorded(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0);
    for (int i = 0; i < 30; i++) {
        assert_false(segment(&budget, 3));
        assert_false(is_spent(&budget, 3e9));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_is_recorded_whole),
        cmocka_unit_test(every_tenth_segment_has_all_programs),
        cmocka_unit_test(it_ends_further_down),
        cmocka_unit_test(a_segment_ends_when_its_share_is_spent),
        cmocka_unit_test(what_was_taken_too_much_is_owed),
        cmocka_unit_test(who_reads_the_records_counts),
        cmocka_unit_test(of_few_requests_all_is_recorded),
        cmocka_unit_test(of_many_requests_it_is_known_as_they_come),
        cmocka_unit_test(what_it_takes_to_rest_is_spent),
        cmocka_unit_test(without_a_share_all_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
