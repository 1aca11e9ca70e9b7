// SPDX-License-Identifier: MIT
//
// The ordinary request in absolute terms: from what its components take, which of them concern
// every request, and what helps.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "analysis/diagnosis/ordinary.h"

static struct component_table table;
static struct normal normals[64];
static struct ordinary_part_array parts;

static int begin(void **state)
{
    (void)state;
    memset(normals, 0, sizeof normals);
    return component_table_init(&table, NULL, NULL, NULL);
}

static int end(void **state)
{
    (void)state;
    component_table_fini(&table);
    array_free(&parts);
    return 0;
}

static void has(int64_t component, double mean_ns, double fast_ns, double met)
{
    assert_true(component >= 0 && component < 64);
    normals[component].mean_ns = mean_ns;
    normals[component].fast_ns = fast_ns;
    normals[component].met = met;
}

static void build(void)
{
    const struct reference reference = {.components = normals,
                                        .component_count = table.components.count};
    assert_int_equal(ordinary_build(&parts, &reference, &table), 0);
}

static const struct ordinary_part *part(const char *name)
{
    for (size_t i = 0; i < parts.count; i++)
        if (strcmp(parts.items[i].name, name) == 0)
            return &parts.items[i];
    fail_msg("there is no part %s", name);
    return NULL;
}

static size_t concerns(void)
{
    size_t count = 0;
    for (size_t i = 0; i < parts.count; i++)
        count += parts.items[i].concerns;
    return count;
}

static void nothing_concerns_a_fast_request(void **state)
{
    (void)state;
    has(COMPONENT_APPLICATION, 8000, 5000, 1);
    has(COMPONENT_WAKE_UP, 9000, 2500, 1); // far above its fast end, but what is 6.5 us?
    has(COMPONENT_CLIENT_RECEIVE, 6000, 4000, 1);
    has(COMPONENT_BLOCKING_A, 4000, 0, 0.2);
    build();
    assert_int_equal(parts.count, 4);
    assert_string_equal(parts.items[0].name, "wake-up latency");
    assert_int_equal(concerns(), 0);
}

// Nagle and delayed ACK: every request has it, its fast end is as slow.
static void a_wait_that_all_have(void **state)
{
    (void)state;
    has(COMPONENT_NAGLE, 42.7e6, 40.1e6, 0.98);
    has(COMPONENT_APPLICATION, 1.4e6, 0.9e6, 1);
    build();
    assert_int_equal(concerns(), 1);
    assert_true(part("Nagle's algorithm")->concerns);
    assert_non_null(strstr(part("Nagle's algorithm")->remedy, "TCP_NODELAY"));
}

// Above its fast end, threefold; and not when it is slow for the fastest, too.
static void above_its_fast_end(void **state)
{
    (void)state;
    has(COMPONENT_CLIENT_RECEIVE, 2e6, 15e3, 1);
    has(COMPONENT_APPLICATION, 2e6, 1.9e6, 1);
    build();
    assert_int_equal(concerns(), 1);
    assert_true(part("client receive")->concerns);
}

// Most requests must have it: what doubles the mean of few is a matter of the slow ones.
static void rare_parts_concern_nobody(void **state)
{
    (void)state;
    has(COMPONENT_PAGE_FAULTS, 1e6, 0, 0.3);
    has(COMPONENT_APPLICATION, 1e6, 0.9e6, 1);
    build();
    assert_int_equal(concerns(), 0);
}

// Two kinds of head-of-line blocking ask for the same, each alone is below the bound.
static void parts_of_a_category_are_judged_together(void **state)
{
    (void)state;
    has(COMPONENT_BLOCKING_A, 2e6, 0, 0.4);
    has(COMPONENT_BLOCKING_CONNECTION_A, 2e6, 0, 0.4);
    has(COMPONENT_APPLICATION, 6e6, 5e6, 1);
    build();
    assert_int_equal(concerns(), 2);
    assert_string_equal(part("head-of-line blocking")->category, "head-of-line blocking");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_concerns_a_fast_request, begin, end),
        cmocka_unit_test_setup_teardown(a_wait_that_all_have, begin, end),
        cmocka_unit_test_setup_teardown(above_its_fast_end, begin, end),
        cmocka_unit_test_setup_teardown(rare_parts_concern_nobody, begin, end),
        cmocka_unit_test_setup_teardown(parts_of_a_category_are_judged_together, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
