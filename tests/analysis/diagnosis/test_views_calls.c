// SPDX-License-Identifier: MIT
//
// The tree of calls: who called whom, for how long on either side, and only where that is known.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/diagnosis/views_calls.h"

enum { TASK_NAME, SERVE, COPY, OTHER };

static void push(struct core_timeline *core, int64_t begin, int64_t end, enum span_kind kind,
                 unsigned name, uint8_t depth)
{
    struct span span = {.begin_ns = begin, .end_ns = end, .kind = kind, .depth = depth};
    span.name = name & SPAN_NAMES;
    assert_int_equal(array_push(&core->spans, span), 0);
}

// serve() works from 0 to 100, and copy() within it from 20 to 50; another task's serve() from 100.
static void build(struct core_timeline *core)
{
    *core = (struct core_timeline){0};
    push(core, 0, 100, SPAN_TASK, TASK_NAME, 0);
    push(core, 0, 100, SPAN_FUNCTION, SERVE, 1);
    push(core, 20, 50, SPAN_FUNCTION, COPY, 2);
    push(core, 100, 200, SPAN_TASK, OTHER, 0);
    push(core, 100, 200, SPAN_FUNCTION, SERVE, 1);
    assert_int_equal(array_push(&core->traced, ((struct time_range){0, 150})), 0);
}

static void clear(struct core_timeline *core, struct call_tree *tree)
{
    array_free(&core->spans);
    array_free(&core->traced);
    call_tree_free(tree);
}

static const struct call_node *find(const struct call_tree *tree, uint32_t parent, uint32_t name)
{
    for (size_t i = 1; i < tree->nodes.count; i++)
        if (tree->nodes.items[i].parent == parent && tree->nodes.items[i].name == name)
            return &tree->nodes.items[i];
    fail_msg("%u does not call %u", parent, name);
    return NULL;
}

static uint32_t number(const struct call_tree *tree, const struct call_node *node)
{
    return (uint32_t)(node - tree->nodes.items);
}

static void callers_hold_what_they_call(void **state)
{
    (void)state;
    struct core_timeline core;
    struct call_tree tree = {0};
    build(&core);
    assert_int_equal(call_tree_add(&tree, &core, 10, 120, VIEW_SLICE), 0);
    assert_int_equal(call_tree_add(&tree, &core, 40, 60, VIEW_REFERENCE), 0);
    const struct call_node *root = tree.nodes.items, *task = find(&tree, 0, TASK_NAME);
    const struct call_node *serve = find(&tree, number(&tree, task), SERVE);
    const struct call_node *copy = find(&tree, number(&tree, serve), COPY);
    const struct call_node *elsewhere = find(&tree, number(&tree, find(&tree, 0, OTHER)), SERVE);
    assert_float_equal(root->ns[VIEW_SLICE], 110, 0);
    assert_float_equal(root->ns[VIEW_REFERENCE], 20, 0);
    assert_float_equal(serve->ns[VIEW_SLICE], 90, 0);
    assert_float_equal(serve->ns[VIEW_REFERENCE], 20, 0);
    assert_float_equal(copy->ns[VIEW_SLICE], 30, 0);
    assert_float_equal(copy->ns[VIEW_REFERENCE], 10, 0);
    assert_float_equal(elsewhere->ns[VIEW_SLICE], 20, 0);
    assert_float_equal(elsewhere->ns[VIEW_REFERENCE], 0, 0);
    assert_int_equal(tree.nodes.count, 6);
    for (size_t i = 1; i < tree.nodes.count; i++)
        assert_true(tree.nodes.items[i].parent < i);
    clear(&core, &tree);
}

static void what_is_not_traced_is_left_out(void **state)
{
    (void)state;
    struct core_timeline core;
    struct call_tree tree = {0};
    build(&core);
    assert_int_equal(call_tree_add(&tree, &core, 120, 180, VIEW_SLICE), 0);
    assert_int_equal(tree.nodes.count, 0);
    clear(&core, &tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_hold_what_they_call),
        cmocka_unit_test(what_is_not_traced_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
