// SPDX-License-Identifier: MIT
//
// Call stacks from flows written by hand: what the scenarios of the round trip do not do.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/pt/calls/pt_calls.h"

// Functions lie 0x1000 apart and are 0x1000 long; their key is their address.
enum { MAIN = 0x1000, WORK = 0x2000, THUNK = 0x3000, TARGET = 0x4000, HANDLER = 0x5000 };

struct seen ARRAY_OF(struct pt_span);

static int keep(void *context, const struct pt_span *span, struct error *err)
{
    (void)err;
    return array_push((struct seen *)context, *span) < 0 ? -ERROR_FAILED : 0;
}

static struct pt_flow flow(enum pt_flow_kind kind, uint64_t tsc, uint64_t from, uint64_t to)
{
    return (struct pt_flow){.kind = (uint8_t)kind,
                            .tsc = tsc,
                            .from = from,
                            .to = to,
                            .function = to & ~(uint64_t)0xfff,
                            .at_start = to && (to & 0xfff) == 0};
}

static struct pt_call_counts run(const struct pt_flow *flows, size_t count,
                                 const struct pt_switches *switches, struct seen *seen)
{
    struct error err;
    struct pt_calls *calls = pt_calls_alloc(switches, true, keep, seen, &err);
    struct pt_piece piece = {
        .flows = {.items = (struct pt_flow *)(uintptr_t)flows, .count = count}};
    assert_non_null(calls);
    assert_int_equal(pt_calls_take(calls, &piece, false, &err), 0);
    assert_int_equal(pt_calls_finish(calls, &err), 0);
    struct pt_call_counts counts = *pt_calls_counts(calls);
    pt_calls_free(calls);
    return counts;
}

#define RUN(flows, seen) run(flows, sizeof(flows) / sizeof *(flows), NULL, seen)

static void expect(const struct pt_span *span, uint64_t function, uint64_t begin, uint64_t end)
{
    assert_int_equal(span->function, function);
    assert_int_equal(span->begin, begin);
    assert_int_equal(span->end, end);
}

// call thunk; thunk: call 1f; ...; 1: mov target, (%rsp); ret
static void a_return_that_was_given_an_address_is_a_jump(void **state)
{
    (void)state;
    const struct pt_flow flows[] = {
        flow(PT_FLOW_BEGIN, 100, 0, MAIN + 0x10),
        flow(PT_FLOW_CALL, 110, MAIN + 0x20, THUNK),
        flow(PT_FLOW_CALL, 111, THUNK, THUNK + 0x20),
        flow(PT_FLOW_RETURN, 112, THUNK + 0x24, TARGET),
        flow(PT_FLOW_RETURN, 150, TARGET + 0x40, MAIN + 0x25),
        flow(PT_FLOW_CALL, 160, MAIN + 0x30, WORK),
        flow(PT_FLOW_RETURN, 170, WORK + 0x10, MAIN + 0x35),
    };
    struct seen seen = {0};
    struct pt_call_counts counts = RUN(flows, &seen);
    assert_int_equal(counts.unmatched, 0);
    assert_int_equal(seen.count, 5);
    expect(&seen.items[0], THUNK, 111, 112);
    expect(&seen.items[1], THUNK, 110, 112);
    expect(&seen.items[2], TARGET, 112, 150);
    expect(&seen.items[3], WORK, 160, 170);
    expect(&seen.items[4], MAIN, 100, 170);
    assert_int_equal(seen.items[4].inner, 2 + 38 + 10);
    array_free(&seen);
}

static void calling_the_next_instruction_is_no_call(void **state)
{
    (void)state;
    struct pt_flow flows[] = {
        flow(PT_FLOW_BEGIN, 100, 0, MAIN + 0x10),
        flow(PT_FLOW_CALL, 110, MAIN + 0x20, MAIN + 0x25),
        flow(PT_FLOW_CALL, 120, MAIN + 0x30, WORK),
        flow(PT_FLOW_RETURN, 130, WORK + 8, MAIN + 0x35),
    };
    struct seen seen = {0};
    RUN(flows, &seen);
    assert_int_equal(seen.count, 2);
    expect(&seen.items[0], WORK, 120, 130);
    expect(&seen.items[1], MAIN, 100, 130);
    array_free(&seen);
}

// A stack switched behind our back: returns to nowhere, then to a call that is known.
static void a_stack_is_found_again_after_returns_to_nowhere(void **state)
{
    (void)state;
    const struct pt_flow flows[] = {
        flow(PT_FLOW_BEGIN, 100, 0, MAIN),
        flow(PT_FLOW_CALL, 110, MAIN + 0x20, WORK),
        flow(PT_FLOW_CALL, 120, WORK + 0x20, TARGET),
        flow(PT_FLOW_RETURN, 130, TARGET + 4, 0x7777),
        flow(PT_FLOW_RETURN, 140, 0x7780, 0x8888),
        flow(PT_FLOW_RETURN, 150, 0x8890, MAIN + 0x25),
    };
    struct seen seen = {0};
    struct pt_call_counts counts = RUN(flows, &seen);
    assert_int_equal(counts.unmatched, 2);
    assert_int_equal(counts.resets, 1); // the beginning
    assert_int_equal(seen.count, 5);
    expect(&seen.items[0], TARGET, 120, 130);
    expect(&seen.items[3], WORK, 110, 150);
    expect(&seen.items[4], MAIN, 100, 150);
    array_free(&seen);
}

static void a_stack_that_is_never_found_again_is_given_up(void **state)
{
    (void)state;
    struct pt_flow flows[40] = {flow(PT_FLOW_BEGIN, 100, 0, MAIN),
                                flow(PT_FLOW_CALL, 110, MAIN + 0x20, WORK)};
    for (uint64_t i = 2; i < 40; i++)
        flows[i] = flow(PT_FLOW_RETURN, 100 + i * 10, i << 20, (i + 1) << 20 | 0x777);
    struct seen seen = {0};
    struct pt_call_counts counts = RUN(flows, &seen);
    assert_int_equal(counts.resets, 2);
    for (size_t i = 0; i < seen.count; i++)
        if (seen.items[i].function == MAIN)
            assert_true(seen.items[i].cut_end && seen.items[i].end < 300);
    array_free(&seen);
}

// User space only: a fault in MAIN, the handler runs, sigreturn, MAIN goes on.
static void a_signal_handler_nests_in_what_it_interrupts(void **state)
{
    (void)state;
    struct pt_flow flows[] = {
        flow(PT_FLOW_BEGIN, 100, 0, MAIN),
        flow(PT_FLOW_DISABLE, 110, MAIN + 0x40, 0),
        flow(PT_FLOW_ENABLE, 120, 0, HANDLER),
        flow(PT_FLOW_CALL, 130, HANDLER + 8, WORK),
        flow(PT_FLOW_RETURN, 140, WORK + 8, HANDLER + 0xd),
        flow(PT_FLOW_FAR_CALL, 150, HANDLER + 0x20, 0),
        flow(PT_FLOW_DISABLE, 150, HANDLER + 0x20, 0),
        flow(PT_FLOW_ENABLE, 160, 0, MAIN + 0x40),
        flow(PT_FLOW_CALL, 170, MAIN + 0x48, WORK),
        flow(PT_FLOW_RETURN, 180, WORK + 8, MAIN + 0x4d),
    };
    flows[1].asynchronous = true;
    struct seen seen = {0};
    struct pt_call_counts counts = RUN(flows, &seen);
    assert_int_equal(counts.resets, 1);
    assert_int_equal(seen.count, 6);
    expect(&seen.items[0], PT_UNTRACED_INTERRUPT, 110, 120);
    expect(&seen.items[1], WORK, 130, 140);
    expect(&seen.items[2], PT_UNTRACED_SYSCALL, 150, 160);
    expect(&seen.items[3], HANDLER, 120, 160);
    assert_int_equal(seen.items[3].kind, PT_SPAN_INTERRUPT);
    expect(&seen.items[4], WORK, 170, 180);
    expect(&seen.items[5], MAIN, 100, 180);
    array_free(&seen);
}

// A library that is filtered out of the trace is called and returns.
static void a_call_of_what_is_not_traced_ends_when_it_returns(void **state)
{
    (void)state;
    const struct pt_flow flows[] = {
        flow(PT_FLOW_BEGIN, 100, 0, MAIN),
        flow(PT_FLOW_CALL, 110, MAIN + 0x20, TARGET),
        flow(PT_FLOW_DISABLE, 110, MAIN + 0x20, TARGET),
        flow(PT_FLOW_ENABLE, 150, 0, MAIN + 0x25),
        flow(PT_FLOW_CALL, 160, MAIN + 0x30, WORK),
        flow(PT_FLOW_RETURN, 170, WORK + 8, MAIN + 0x35),
    };
    struct seen seen = {0};
    RUN(flows, &seen);
    assert_int_equal(seen.count, 4);
    expect(&seen.items[0], PT_UNTRACED_OTHER, 110, 150);
    expect(&seen.items[1], TARGET, 110, 150);
    expect(&seen.items[2], WORK, 160, 170);
    expect(&seen.items[3], MAIN, 100, 170);
    array_free(&seen);
}

static void a_loss_cuts_everything_and_is_a_span(void **state)
{
    (void)state;
    const struct pt_flow flows[] = {
        flow(PT_FLOW_BEGIN, 100, 0, MAIN),
        flow(PT_FLOW_CALL, 110, MAIN + 0x20, WORK),
        flow(PT_FLOW_LOST, 120, 0, 0),
        flow(PT_FLOW_BEGIN, 200, 0, WORK + 0x20),
        flow(PT_FLOW_RETURN, 210, WORK + 0x30, MAIN + 0x25),
    };
    struct seen seen = {0};
    struct pt_call_counts counts = RUN(flows, &seen);
    assert_int_equal(counts.gaps, 1);
    assert_int_equal(counts.gap_time, 80);
    assert_int_equal(counts.covered_time, 20 + 10);
    assert_int_equal(seen.count, 5);
    expect(&seen.items[0], WORK, 110, 120);
    assert_true(seen.items[0].cut_end);
    expect(&seen.items[1], MAIN, 100, 120);
    assert_int_equal(seen.items[2].kind, PT_SPAN_LOST);
    expect(&seen.items[2], 0, 120, 200);
    expect(&seen.items[3], WORK, 200, 210);
    expect(&seen.items[4], MAIN, 200, 210);
    assert_true(seen.items[4].cut_begin && seen.items[4].level < seen.items[3].level);
    array_free(&seen);
}

static void granularity_is_what_nine_of_ten_boundaries_keep(void **state)
{
    (void)state;
    struct pt_call_counts counts = {0};
    assert_int_equal(pt_calls_granularity(&counts), 0);
    counts.errors[5] = 89;
    counts.errors[9] = 2;
    counts.errors[20] = 9;
    assert_int_equal(pt_calls_granularity(&counts), 1 << 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_return_that_was_given_an_address_is_a_jump),
        cmocka_unit_test(calling_the_next_instruction_is_no_call),
        cmocka_unit_test(a_stack_is_found_again_after_returns_to_nowhere),
        cmocka_unit_test(a_stack_that_is_never_found_again_is_given_up),
        cmocka_unit_test(a_signal_handler_nests_in_what_it_interrupts),
        cmocka_unit_test(a_call_of_what_is_not_traced_ends_when_it_returns),
        cmocka_unit_test(a_loss_cuts_everything_and_is_a_span),
        cmocka_unit_test(granularity_is_what_nine_of_ten_boundaries_keep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
