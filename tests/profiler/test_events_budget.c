// SPDX-License-Identifier: MIT
//
// What a capture does without, so that its programs take no more than they may: some of them in
// nine of ten segments, and the rest of a segment whose share is spent.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "profiler/events_budget.h"

static const uint64_t SEGMENT_NS = 1000000000, MANY = 10000;

static struct events_budget a_budget(double share)
{
    return (struct events_budget){.share = share, .segment_ns = SEGMENT_NS, .many = true};
}

// A segment in which all programs would take so much of a core. Whether it was sparing.
static bool segment(struct events_budget *budget, double all)
{
    events_budget_measured(budget, budget->sparing ? all / 3 : all, 0);
    const bool sparing = budget->sparing;
    events_budget_next(budget, MANY, SEGMENT_NS / 10, SEGMENT_NS);
    return sparing;
}

static void little_is_recorded_whole(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0.05);
    for (int i = 0; i < 30; i++) {
        assert_false(segment(&budget, 0.05));
        assert_false(events_budget_is_spent(&budget, SEGMENT_NS - 1));
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
    assert_true(segment(&budget, 0.05));
    assert_true(segment(&budget, 0.039));
    assert_false(segment(&budget, 0.05));
    assert_false(segment(&budget, 0.05));
}

static void a_segment_ends_when_its_share_is_spent(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0.05);
    assert_false(events_budget_is_spent(&budget, SEGMENT_NS)); // nobody knows yet what they take
    events_budget_measured(&budget, 0.5, 0);
    assert_false(events_budget_is_spent(&budget, SEGMENT_NS / 10 - 1000));
    assert_true(events_budget_is_spent(&budget, SEGMENT_NS / 10 + 1000));
    // The next one has fewer programs, and is taken to cost what they do until that is measured.
    events_budget_next(&budget, MANY, SEGMENT_NS / 10, SEGMENT_NS);
    assert_true(budget.sparing);
    assert_false(events_budget_is_spent(&budget, SEGMENT_NS * 3 / 10 - 1000));
    assert_true(events_budget_is_spent(&budget, SEGMENT_NS * 3 / 10 + 1000));
}

// It was noticed late, or there was so much that the segment was cut early.
static void what_was_taken_too_much_is_owed(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0.05);
    events_budget_measured(&budget, 0.5, 0);
    events_budget_next(&budget, MANY, SEGMENT_NS / 10, SEGMENT_NS / 2); // twice the share
    events_budget_measured(&budget, 0.5, 0);
    assert_false(events_budget_is_spent(&budget, SEGMENT_NS / 20 - 1000));
    assert_true(events_budget_is_spent(&budget, SEGMENT_NS / 20 + 1000));
    events_budget_next(&budget, MANY, SEGMENT_NS / 20, SEGMENT_NS); // paid back
    events_budget_measured(&budget, 0.5, 0);
    assert_false(events_budget_is_spent(&budget, SEGMENT_NS / 10 - 1000));
}

static void who_reads_the_records_counts(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0.05);
    events_budget_read(&budget, 100, 1000000); // files and the like: not by the record
    events_budget_measured(&budget, 0.01, 100000);
    assert_false(events_budget_is_spent(&budget, SEGMENT_NS));
    events_budget_read(&budget, 100000, 40000000);
    events_budget_measured(&budget, 0.01, 100000);
    assert_true(events_budget_is_spent(&budget, SEGMENT_NS + 1000));
    events_budget_measured(&budget, 0.01, 1000000);
    assert_true(events_budget_is_spent(&budget, SEGMENT_NS / 8));
    assert_false(events_budget_is_spent(&budget, SEGMENT_NS / 9));
}

static void of_few_requests_all_is_recorded(void **state)
{
    (void)state;
    struct events_budget budget = {.share = 0.05, .segment_ns = SEGMENT_NS};
    events_budget_measured(&budget, 2, 0);
    assert_false(events_budget_is_spent(&budget, SEGMENT_NS)); // nobody knows yet
    events_budget_next(&budget, BUDGET_LEAST_RATE / 10, SEGMENT_NS / 10, SEGMENT_NS);
    assert_false(budget.sparing);
    assert_false(events_budget_is_spent(&budget, SEGMENT_NS));
    events_budget_next(&budget, BUDGET_LEAST_RATE / 10 + 1, SEGMENT_NS / 10, SEGMENT_NS);
    assert_true(budget.sparing);
    assert_true(events_budget_is_spent(&budget, SEGMENT_NS));
    events_budget_next(&budget, BUDGET_LEAST_RATE / 10, SEGMENT_NS / 10, SEGMENT_NS);
    assert_false(budget.sparing);
    assert_false(events_budget_is_spent(&budget, SEGMENT_NS));
}

static void without_a_share_all_is_recorded(void **state)
{
    (void)state;
    struct events_budget budget = a_budget(0);
    for (int i = 0; i < 30; i++) {
        assert_false(segment(&budget, 3));
        assert_false(events_budget_is_spent(&budget, SEGMENT_NS));
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
        cmocka_unit_test(without_a_share_all_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
