// SPDX-License-Identifier: MIT
//
// Function logs into spans: calls that nest, threads that come and go in the middle of calls, marks
// of the watch, records that are missing, and bytes that are no records.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/timeline/function_spans.h"

static int64_t same(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context;
    (void)clock;
    return (int64_t)value;
}
static const struct time_source host = {.convert = same};

static struct function_name three_names[] = {{10, 0}, {20, 1}, {30, 2}};
static const struct function_names names = {three_names, 3, 3};
enum { UNNAMED = 9 };

static void build(const struct function_event *events, size_t count, struct function_log_spans *out)
{
    assert_int_equal(function_log_spans_build(events, count, 0, &host, &names, UNNAMED, out), 0);
}

static void is_span(const struct function_log_spans *spans, size_t i, uint32_t name,
                    int64_t begin_ns, int64_t end_ns, bool cut)
{
    assert_true(i < spans->functions.count);
    const struct span *span = &spans->functions.items[i];
    assert_int_equal(span->name, name);
    assert_int_equal(span->begin_ns, begin_ns);
    assert_int_equal(span->end_ns, end_ns);
    assert_int_equal(span->id, SPAN_ID_KERNEL | (cut ? SPAN_ID_CUT : 0));
    assert_int_equal(span->kind, SPAN_FUNCTION);
}

static void calls_nest(void **state)
{
    (void)state;
    struct function_log_spans spans;
    const struct function_event events[] = {
        {100, 0, 0, 0, FUNCTION_WATCHED, 0}, {110, 10, 7, 0, FUNCTION_ENTER, 0},
        {115, 99, 7, 1, FUNCTION_ENTER, 0}, // another core's
        {120, 20, 7, 0, FUNCTION_ENTER, 0},  {130, 20, 7, 0, FUNCTION_EXIT, 0},
        {140, 40, 7, 0, FUNCTION_ENTER, 0},  {150, 40, 7, 0, FUNCTION_EXIT, 0},
        {160, 10, 7, 0, FUNCTION_EXIT, 0},   {200, 0, 0, 0, FUNCTION_UNWATCHED, 0}};
    build(events, sizeof events / sizeof *events, &spans);
    assert_int_equal(spans.functions.count, 3);
    is_span(&spans, 0, 0, 110, 160, false);
    is_span(&spans, 1, 1, 120, 130, false);
    is_span(&spans, 2, UNNAMED, 140, 150, false);
    assert_int_equal(spans.traced.count, 1);
    assert_int_equal(spans.traced.items[0].begin_ns, 100);
    assert_int_equal(spans.traced.items[0].end_ns, 200);
    assert_int_equal(spans.unpaired + spans.lost + spans.damaged, 0);
    function_log_spans_free(&spans);
}

// 7 sleeps in 10 > 20, 8 wakes up in 30, and 7 comes back.
static void threads_change_inside_calls(void **state)
{
    (void)state;
    struct function_log_spans spans;
    const struct function_event events[] = {
        {100, 0, 0, 0, FUNCTION_WATCHED, 0}, {110, 10, 7, 0, FUNCTION_ENTER, 0},
        {120, 20, 7, 0, FUNCTION_ENTER, 0},  {130, 30, 8, 0, FUNCTION_EXIT, 0},
        {140, 20, 8, 0, FUNCTION_ENTER, 0},  {150, 20, 7, 0, FUNCTION_EXIT, 0},
        {160, 10, 7, 0, FUNCTION_EXIT, 0},   {170, 0, 0, 0, FUNCTION_UNWATCHED, 0}};
    build(events, sizeof events / sizeof *events, &spans);
    assert_int_equal(spans.functions.count, 6);
    is_span(&spans, 0, 0, 110, 130, true);
    is_span(&spans, 1, 1, 120, 130, true);
    is_span(&spans, 2, 2, 130, 130, true); // it was inside before 8 was seen: no length
    is_span(&spans, 3, 1, 140, 150, true);
    is_span(&spans, 4, 0, 150, 160, true);
    is_span(&spans, 5, 1, 150, 150, true);
    assert_int_equal(spans.unpaired, 0);
    function_log_spans_free(&spans);
}

static void lost_records_are_no_functions(void **state)
{
    (void)state;
    struct function_log_spans spans;
    const struct function_event events[] = {
        {100, 0, 0, 0, FUNCTION_WATCHED, 0},  {110, 10, 7, 0, FUNCTION_ENTER, 0},
        {500, 0, 0, 0, FUNCTION_LOST, 0},     {510, 20, 7, 0, FUNCTION_ENTER, 0},
        {520, 30, 7, 0, FUNCTION_EXIT, 0},    {530, 20, 7, 0, FUNCTION_EXIT, 0},
        {600, 0, 0, 0, FUNCTION_UNWATCHED, 0}};
    build(events, sizeof events / sizeof *events, &spans);
    assert_int_equal(spans.functions.count, 2);
    is_span(&spans, 0, 0, 110, 110, true);
    is_span(&spans, 1, 1, 510, 530, false);
    assert_int_equal(spans.traced.count, 2);
    assert_int_equal(spans.traced.items[0].end_ns, 110);
    assert_int_equal(spans.traced.items[1].begin_ns, 500);
    assert_int_equal(spans.lost, 1);
    assert_int_equal(spans.unpaired, 1);
    function_log_spans_free(&spans);
}

// Whatever the bytes: spans lie in order, forwards, and nest.
static void any_bytes(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 300; round++) {
        struct function_event events[200];
        for (size_t i = 0; i < sizeof events / sizeof *events; i++)
            events[i] = (struct function_event){.time = (uint64_t)(i * 3 + (unsigned)rand() % 9),
                                                .address = (uint64_t)(rand() % 5 * 10),
                                                .thread = (uint32_t)rand() % 3,
                                                .kind = (uint8_t)(rand() % (round % 2 ? 3 : 7))};
        struct function_log_spans spans;
        build(events, sizeof events / sizeof *events, &spans);
        for (size_t i = 0; i < spans.functions.count; i++) {
            const struct span *span = &spans.functions.items[i];
            assert_true(span->end_ns >= span->begin_ns);
            assert_true(i == 0 || span->begin_ns >= span[-1].begin_ns);
            for (size_t k = 0; k < i; k++) {
                const struct span *before = &spans.functions.items[k];
                assert_true(before->end_ns <= span->begin_ns || span->end_ns <= before->end_ns);
            }
        }
        for (size_t i = 1; i < spans.traced.count; i++)
            assert_true(spans.traced.items[i].begin_ns >= spans.traced.items[i - 1].end_ns);
        function_log_spans_free(&spans);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_nest),
        cmocka_unit_test(threads_change_inside_calls),
        cmocka_unit_test(lost_records_are_no_functions),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
