// SPDX-License-Identifier: MIT
//
// Socket calls made of the kernel's events, beside the shim's and held against them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/calls/call_comparison.h"
#include "analysis/calls/kernel_calls.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { THREAD = 41, PROCESS = 40, OTHER = 77 };

static struct event event(uint64_t time, uint8_t kind, uint16_t core, uint32_t id, uint64_t a,
                          uint64_t b)
{
    return (struct event){
        .time = time, .kind = kind, .core = core, .id = id, .payload = {{.a = a, .b = b}}};
}

static uint64_t by(uint32_t thread, uint32_t bytes)
{
    return (uint64_t)bytes << 32 | thread;
}

static struct connection connection(uint32_t id, uint16_t peer_port)
{
    return (struct connection){
        .id = id, .protocol = CONNECTION_TCP, .local_port = 80, .peer_port = peer_port};
}

// Records by core: a request read in two pieces, its reply sent from another core than the one the
// call began on, and a call on a socket that is not in the table.
static void calls_are_made_of_records(void **state)
{
    (void)state;
    const struct event events[] = {
        event(50, EVENT_MEMBER, 0, THREAD, PROCESS, 1),
        event(100, EVENT_RECEIVED, 0, 7, 60, by(THREAD, 60)),
        event(110, EVENT_RECEIVED, 0, 7, 100, by(THREAD, 40)),
        event(120, EVENT_SENDING, 0, 7, 500, THREAD),
        event(170, EVENT_RECEIVED, 0, 99, 10, by(THREAD, 10)),
        event(150, EVENT_SENT, 1, 7, 530, by(THREAD, 30)),
        event(200, EVENT_SENT, 1, 7, 540, by(OTHER, 10)), // its beginning was not recorded
    };
    const struct connection sockets[] = {connection(7, 1000), connection(8, 1001)};
    struct kernel_calls calls;
    assert_int_equal(kernel_calls_build(events, COUNT(events), sockets, COUNT(sockets), &calls), 0);
    assert_int_equal(calls.connections.count, 1); // the other has no calls
    assert_int_equal(calls.connections.items[0].id, 7);
    assert_int_equal(calls.connections.items[0].process, PROCESS);
    assert_int_equal(calls.calls.count, 4);
    const struct call *all = calls.calls.items;
    assert_int_equal(all[0].kind, CALL_RECEIVE);
    assert_int_equal(all[0].offset, 0);
    assert_int_equal(all[0].length, 60);
    assert_int_equal(all[0].exit_tsc, 100);
    assert_int_equal(all[1].offset, 60);
    assert_int_equal(all[2].kind, CALL_SEND);
    assert_int_equal(all[2].entry_tsc, 120);
    assert_int_equal(all[2].exit_tsc, 150);
    assert_int_equal(all[2].entry_core, 0);
    assert_int_equal(all[2].exit_core, 1);
    assert_int_equal(all[2].offset, 500);
    assert_int_equal(all[2].process, PROCESS);
    assert_int_equal(all[3].thread, OTHER);
    assert_int_equal(all[3].process, OTHER);
    assert_int_equal(all[3].entry_tsc, 200);
    kernel_calls_free(&calls);
}

// A thread that sleeps in a wait call on one core and comes back on another.
static void waits_are_known_where_a_thread_slept(void **state)
{
    (void)state;
    struct event leaves = event(200, EVENT_SWITCH, 0, 0, 0, 0);
    leaves.flags = SWITCH_WAITS;
    const struct event events[] = {
        event(10, EVENT_SWITCH, 0, THREAD, 0, 0),
        event(100, EVENT_RECEIVED, 0, 7, 60, by(THREAD, 60)),
        leaves,
        event(5, EVENT_SWITCH, 1, OTHER, 0, 0),
        event(300, EVENT_SWITCH, 1, THREAD, 0, 0),
        event(310, EVENT_RECEIVED, 1, 7, 100, by(THREAD, 40)),
        event(400, EVENT_SWITCH, 1, OTHER, 0, 0), // it did not leave to wait
        event(500, EVENT_SWITCH, 1, THREAD, 0, 0),
    };
    const struct connection sockets[] = {connection(7, 1000)};
    struct kernel_calls calls;
    assert_int_equal(kernel_calls_build(events, COUNT(events), sockets, COUNT(sockets), &calls), 0);
    assert_int_equal(calls.calls.count, 3);
    assert_int_equal(calls.calls.items[1].kind, CALL_WAIT);
    assert_int_equal(calls.calls.items[1].entry_tsc, 200);
    assert_int_equal(calls.calls.items[1].exit_tsc, 300);
    assert_int_equal(calls.calls.items[1].exit_core, 1);
    assert_int_equal(calls.calls.items[1].connection, 0);
    kernel_calls_free(&calls);
}

static void nothing_is_made_of_nothing(void **state)
{
    (void)state;
    const struct event events[] = {event(10, EVENT_HANDOFF, 0, 7, 60, 0)};
    const struct connection sockets[] = {connection(7, 1000)};
    struct kernel_calls calls;
    assert_int_equal(kernel_calls_build(events, COUNT(events), sockets, COUNT(sockets), &calls), 0);
    assert_int_equal(calls.calls.count, 0);
    assert_int_equal(calls.connections.count, 0);
    kernel_calls_free(&calls);
}

// One server has the shim, the other not; the shim's ids are the kernel's of other connections, and
// one is the greatest that there is, as in a damaged log.
static void the_kernels_calls_stand_beside_the_shims(void **state)
{
    (void)state;
    const struct event events[] = {
        event(100, EVENT_RECEIVED, 0, 1, 60, by(THREAD, 60)),
        event(110, EVENT_RECEIVED, 0, 2, 60, by(OTHER, 60)),
        event(120, EVENT_RECEIVED, 0, 3, 60, by(OTHER, 60)),
    };
    const struct connection sockets[] = {connection(1, 1000), connection(2, 1001),
                                         connection(3, 1002)};
    const struct connection shims[] = {connection(2, 1000), connection(UINT32_MAX, 5000)};
    const struct call known[] = {{.kind = CALL_RECEIVE, .connection = 2, .thread = THREAD}};
    struct kernel_calls calls;
    assert_int_equal(kernel_calls_build(events, COUNT(events), sockets, COUNT(sockets), &calls), 0);
    assert_int_equal(calls.connections.count, 3);
    assert_int_equal(kernel_calls_beside_shim(&calls, known, COUNT(known), shims, COUNT(shims)), 0);
    assert_int_equal(calls.connections.count, 2);
    assert_int_equal(calls.calls.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(calls.calls.items[i].thread, OTHER);
        assert_int_equal(calls.calls.items[i].connection, calls.connections.items[i].id);
        assert_int_equal(calls.connections.items[i].id, i == 0 ? 1 : 3);
    }
    assert_int_equal(calls.connections.items[0].peer_port, 1001);
    kernel_calls_free(&calls);
}

// A process that the shim does not work in any more, behind a filter, has a connection that the
// shim knows of another one's accept.
static void calls_that_the_shim_lacks_are_the_kernels(void **state)
{
    (void)state;
    const struct event events[] = {
        event(100, EVENT_RECEIVED, 0, 1, 60, by(THREAD, 60)),
        event(110, EVENT_RECEIVED, 0, 2, 60, by(OTHER, 60)),
    };
    const struct connection sockets[] = {connection(1, 1000), connection(2, 1001)};
    const struct connection shims[] = {connection(7, 1000), connection(8, 1001)};
    const struct call known[] = {{.kind = CALL_RECEIVE, .connection = 7, .thread = THREAD},
                                 {.kind = CALL_CLOSE, .connection = 8, .thread = THREAD}};
    struct kernel_calls calls;
    assert_int_equal(kernel_calls_build(events, COUNT(events), sockets, COUNT(sockets), &calls), 0);
    assert_int_equal(kernel_calls_beside_shim(&calls, known, COUNT(known), shims, COUNT(shims)), 0);
    assert_int_equal(calls.connections.count, 0);
    assert_int_equal(calls.adopted, 1);
    assert_int_equal(calls.calls.count, 1);
    assert_int_equal(calls.calls.items[0].connection, 8);
    kernel_calls_free(&calls);
}

static int64_t same(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context;
    return (int64_t)value + (clock == HOST_CLOCK_TSC ? 1000 : 0);
}

// The shim's log began later, misses a call and has one that the kernel does not.
static void both_records_of_a_call_are_compared(void **state)
{
    (void)state;
    const struct connection kernels[] = {connection(1, 1000), connection(2, 1001)};
    const struct connection shims[] = {connection(9, 1000)};
    struct call kernel[8], shim[8];
    for (uint64_t i = 0; i < 8; i++) {
        kernel[i] = (struct call){.kind = CALL_RECEIVE,
                                  .connection = 1,
                                  .offset = i * 10,
                                  .length = 10,
                                  .entry_tsc = i * 100,
                                  .exit_tsc = i * 100};
        shim[i] = kernel[i];
        shim[i].connection = 9;
        shim[i].exit_tsc += i - 1000; // i ns later than the kernel
    }
    shim[5].offset += 1; // a call of its own
    const struct call_log one = {shim + 2, 6, shims, 1, HOST_CLOCK_TSC};
    const struct call_log other = {kernel, 8, kernels, 2, HOST_CLOCK_MONOTONIC};
    const struct time_source clock = {.convert = same};
    struct call_comparison found;
    assert_int_equal(call_comparison_build(&one, &other, &clock, &found), 0);
    assert_int_equal(found.connections, 1);
    assert_int_equal(found.receives.both, 5);
    assert_int_equal(found.receives.shim_only, 1);
    assert_int_equal(found.receives.kernel_only, 1);
    assert_int_equal(found.receives.other_bytes, 0);
    assert_true(found.receives.least_ns == 2 && found.receives.most_ns == 7);
    assert_true(found.receives.median_ns == 4);
    assert_int_equal(found.sends.both, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_made_of_records),
        cmocka_unit_test(waits_are_known_where_a_thread_slept),
        cmocka_unit_test(nothing_is_made_of_nothing),
        cmocka_unit_test(the_kernels_calls_stand_beside_the_shims),
        cmocka_unit_test(calls_that_the_shim_lacks_are_the_kernels),
        cmocka_unit_test(both_records_of_a_call_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
