// SPDX-License-Identifier: MIT
//
// The threads' samples in one order, against the plain way to do it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loadgen/engine/sample_merge.h"

enum { MOST_PARTS = 9, MOST_SAMPLES = 500 };

static uint32_t random_state = 1;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % below;
}

// The part whose sample is next, by a look at all of them.
static uint32_t next_part(const struct sample_part *parts, uint32_t count, bool dealt,
                          const size_t *taken, size_t merged)
{
    uint32_t first = count;
    if (dealt)
        return (uint32_t)(merged % count);
    for (uint32_t i = 0; i < count; i++)
        if (taken[i] < parts[i].count &&
            (first == count || parts[i].samples[taken[i]].intended_tsc <
                                   parts[first].samples[taken[first]].intended_tsc))
            first = i;
    return first;
}

static void check_merge(uint32_t count, bool dealt, uint32_t ties)
{
    struct sample *all = calloc(MOST_PARTS * MOST_SAMPLES, sizeof *all);
    struct sample *merged = calloc(MOST_PARTS * MOST_SAMPLES, sizeof *merged);
    struct sample_part parts[MOST_PARTS];
    size_t taken[MOST_PARTS] = {0}, sum = 0;
    struct error err;
    const size_t scheduled = draw(MOST_SAMPLES);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t tsc = 1000;
        struct sample *samples = &all[i * MOST_SAMPLES];
        size_t own = dealt ? (scheduled + count - 1 - i) / count : draw(MOST_SAMPLES);
        for (size_t k = 0; k < own; k++)
            samples[k] = (struct sample){
                .intended_tsc = tsc += draw(ties), .connection = i, .request_begin = k};
        parts[i] = (struct sample_part){samples, own};
        sum += own;
    }
    assert_int_equal(sample_merge(parts, count, dealt, merged, &err), 0);
    for (size_t i = 0; i < sum; i++) {
        uint32_t part = next_part(parts, count, dealt, taken, i);
        assert_memory_equal(&merged[i], &parts[part].samples[taken[part]++], sizeof *merged);
    }
    free(all);
    free(merged);
}

static void a_schedule_is_as_it_was_dealt(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= MOST_PARTS; count++)
        for (unsigned round = 0; round < 10; round++)
            check_merge(count, true, 100);
}

static void a_closed_loop_is_in_the_order_of_time(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= MOST_PARTS; count++)
        for (uint32_t ties = 1; ties < 1000; ties *= 3)
            for (unsigned round = 0; round < 5; round++)
                check_merge(count, false, ties);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schedule_is_as_it_was_dealt),
        cmocka_unit_test(a_closed_loop_is_in_the_order_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
