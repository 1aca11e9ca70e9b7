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
    agent_clock_rebase(&result, 50000, 3e9, NULL); // a clock three times as fast
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
    assert_int_equal(result.counts.rx_missing, 1);
    assert_false(result.kernel_stamps);
    assert_non_null(strstr(result.stamps_why.text, "on other machines"));
}

// The stamps of kernel and NIC, too, where both hosts' clocks were followed: the agent's REALTIME
// is a day behind and was slewed to half its rate, this host's runs at the right one.
static void stamps_move_with_them(void **state)
{
    enum { DAY = 86400 };
    const int64_t there_ns = INT64_C(1700000000) * 1000000000, here_ns = there_ns + DAY;
    struct clock_knot there[] = {
        {there_ns, 1000, 0}, {there_ns + 1000, 2000, 0}, {there_ns + 1500, 3000, 0}};
    struct clock_knot here[] = {{here_ns, 50000, 0}, {here_ns + 2000, 56000, 0}};
    struct sample samples[] = {
        {.intended_tsc = 1000,
         .reply_tsc = 3000,
         .tx_ns = (uint64_t)there_ns + 500,
         .rx_ns = (uint64_t)there_ns + 1250,
         .tx_source = STAMP_HARDWARE,
         .rx_source = STAMP_SOFTWARE},
        {.intended_tsc = 2000}, // never sent
    };
    struct engine_result result = {.samples = samples,
                                   .sample_count = 2,
                                   .tsc_hz = 1e9,
                                   .start_tsc = 1000,
                                   .end_tsc = 4000,
                                   .clock = {.items = there, .count = 3},
                                   .kernel_stamps = true,
                                   .hardware_stamps = true};
    const struct clock_knot_array knots = {.items = here, .count = 2};
    (void)state;
    agent_clock_rebase(&result, 50000, 3e9, &knots);
    assert_int_equal(samples[0].tx_ns, here_ns + 500);  // 500 ns after the begin
    assert_int_equal(samples[0].rx_ns, here_ns + 1500); // and 1500, for the clock was slow then
    assert_int_equal(samples[0].tx_source, STAMP_HARDWARE);
    assert_int_equal(samples[0].rx_source, STAMP_SOFTWARE);
    assert_int_equal(samples[1].tx_ns, 0);
    assert_int_equal(result.stamps_missing, 0);
    assert_true(result.kernel_stamps && result.hardware_stamps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shortest_trip_counts),
        cmocka_unit_test(measurements_move_to_this_axis),
        cmocka_unit_test(stamps_move_with_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
