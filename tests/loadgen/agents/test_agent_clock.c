// SPDX-License-Identifier: MIT
//
// The clock of an agent on another host: the shortest round trip counts and bounds the error, and
// what it measured lands on this host's time axis.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "loadgen/agents/agent_fleet.h"

static void the_shortest_trip_counts(void **state)
{
    struct agent_clock clock = {.trips = 0};
    const int64_t offset_ns = -123456789012;
    (void)state;
    for (int i = 0; i < 200; i++) {
        agent_clock_asked(&clock);
        agent_clock_answered(&clock, agent_clock_now_ns() + offset_ns);
    }
    assert_int_equal(clock.trips, 200);
    assert_true(llabs(clock.offset_ns - offset_ns) <= (long long)agent_clock_bound_ns(&clock) + 1);
    // What nobody asked for relates to nothing.
    struct agent_clock before = clock;
    agent_clock_answered(&clock, 0);
    assert_int_equal(clock.trips, before.trips);
    assert_int_equal(clock.offset_ns, before.offset_ns);
}

static void measurements_move_to_this_axis(void **state)
{
    struct sample samples[] = {
        {.intended_tsc = 1000,
         .send_tsc = 1500,
         .sent_tsc = 1600,
         .reply_tsc = 3000,
         .tx_ns = 7,
         .rx_ns = 8,
         .tx_source = STAMP_SOFTWARE,
         .rx_source = STAMP_SOFTWARE},
        {.intended_tsc = 2000}, // never sent
    };
    struct connection connection = {.opened_time = 500};
    struct engine_result result = {.samples = samples,
                                   .sample_count = 2,
                                   .connections = &connection,
                                   .connection_count = 1,
                                   .tsc_hz = 1e9,
                                   .start_tsc = 1000,
                                   .end_tsc = 4000,
                                   .late_tsc = 10,
                                   .kernel_stamps = true};
    (void)state;
    agent_clock_rebase(&result, 50000, 3e9); // a clock three times as fast
    assert_int_equal(samples[0].intended_tsc, 50000);
    assert_int_equal(samples[0].send_tsc, 51500);
    assert_int_equal(samples[0].sent_tsc, 51800);
    assert_int_equal(samples[0].reply_tsc, 56000); // 2000 ns of latency, as before
    assert_int_equal(samples[1].intended_tsc, 53000);
    assert_int_equal(samples[1].reply_tsc, 0);
    assert_int_equal(connection.opened_time, 48500);
    assert_int_equal(result.start_tsc, 50000);
    assert_int_equal(result.end_tsc, 59000);
    assert_int_equal(result.late_tsc, 30);
    assert_int_equal(samples[0].tx_ns, 0);
    assert_int_equal(samples[0].rx_source, STAMP_NONE);
    assert_int_equal(result.stamps_missing, 1);
    assert_false(result.kernel_stamps);
    assert_non_null(strstr(result.stamps_why.text, "on other machines"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shortest_trip_counts),
        cmocka_unit_test(measurements_move_to_this_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
