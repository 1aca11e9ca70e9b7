// SPDX-License-Identifier: MIT
//
// Which of the open functions are a context's. A trace that begins in an interrupt's middle has
// what was interrupted as open since that moment, and thus within the interrupt.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/decomposition/decomposer.h"

enum name { MEMCACHED, EVENT_BASE_LOOP, SYSVEC, HANDLE_SOFTIRQS, NET_RX_ACTION, SPIN, NAMES };
static char *const names[NAMES] = {
    "memcached",       "event_base_loop", "asm_sysvec_call_function",
    "handle_softirqs", "net_rx_action",   "queued_spin_lock_slowpath"};

static struct span span(enum span_kind kind, enum name name, uint32_t id)
{
    return (struct span){
        .begin_ns = 0, .end_ns = 1000000, .kind = kind, .name = name & SPAN_NAMES, .id = id};
}

// The outermost function of a context in which these are open.
static enum name outermost(enum span_kind kind, const struct span *functions, size_t count)
{
    struct host_timeline host = {.names = {.items = (char **)names, .count = NAMES}};
    struct diagnosis_input in = {.server = &host, .granularity_ns = 1000};
    struct decomposer decomposer = {.in = &in};
    struct sweep sweep = {.decomposer = &decomposer};
    struct span task = span(SPAN_TASK, MEMCACHED, 7), context = span(kind, MEMCACHED, 3);
    const struct span *open[8] = {&task, &context};
    for (size_t i = 0; i < count; i++)
        open[2 + i] = &functions[i];
    assert_ptr_equal(sweep_context(&sweep, open, (unsigned)(2 + count)), &context);
    assert_true(decomposer.stack.count > 0);
    return decomposer.stack.functions[0]->name;
}

static void what_was_interrupted_is_not_the_interrupts(void **state)
{
    (void)state;
    const struct span functions[] = {span(SPAN_FUNCTION, EVENT_BASE_LOOP, SPAN_ID_CUT),
                                     span(SPAN_FUNCTION, SYSVEC, SPAN_ID_KERNEL),
                                     span(SPAN_FUNCTION, HANDLE_SOFTIRQS, SPAN_ID_KERNEL),
                                     span(SPAN_FUNCTION, NET_RX_ACTION, SPAN_ID_KERNEL),
                                     span(SPAN_FUNCTION, SPIN, SPAN_ID_KERNEL)};
    assert_int_equal(outermost(SPAN_SOFTIRQ, functions, 5), NET_RX_ACTION);
    assert_int_equal(outermost(SPAN_SOFTIRQ, functions + 3, 2), NET_RX_ACTION);
    assert_int_equal(outermost(SPAN_SOFTIRQ, functions + 2, 1), HANDLE_SOFTIRQS);
    assert_int_equal(outermost(SPAN_VECTOR, functions, 2), SYSVEC);
    assert_int_equal(outermost(SPAN_IRQ, functions, 2), SYSVEC);
    assert_int_equal(outermost(SPAN_TASK, functions, 5), EVENT_BASE_LOOP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_interrupted_is_not_the_interrupts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
