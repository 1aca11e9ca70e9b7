// SPDX-License-Identifier: MIT
//
// The join of a run whose client is another machine: held against the same run on one host, what
// the server did is the same, the latency is the client's, and the network's two ways are within
// the bound.
#include <math.h>

#include "analysis/calls/streams.h"
#include "tests/analysis/lifetime/joined.h"

// The client's host time, of what the scenario calls host time.
struct client_host {
    int64_t ahead_ns;
    double rate;
    int64_t step_at_ns, step_ns;
};

static int64_t convert_by_client(const void *context, enum host_clock clock, uint64_t value)
{
    const struct client_host *host = context;
    struct time_source one = scenario_clock();
    int64_t truth = time_source_to_host(&one, clock, value);
    return truth + host->ahead_ns + (int64_t)((double)(truth - SCENARIO_BEGIN_NS) * host->rate) +
           (truth >= host->step_at_ns ? host->step_ns : 0);
}

// A life by two clocks against the same by one: what the server did is the same, the latency is the
// client's, the network's two ways are within the bound and together exact.
static void compare_lives(const struct lifetime *one, const struct lifetime *two, double rate)
{
    double sum = 0, both = 0, allowed = fabs(rate) * one->latency_ns + 3;
    for (int stage = 0; stage < STAGES; stage++) {
        double off = two->stage_ns[stage] - one->stage_ns[stage];
        bool network = stage == STAMP_NIC || stage == STAMP_CLIENT_RX;
        sum += two->stage_ns[stage];
        both += network ? off : 0;
        assert_true(two->stage_ns[stage] >= 0);
        if (!network || isfinite(two->hosts_error_ns))
            assert_true(fabs(off) <= (network ? two->hosts_error_ns : 0) + allowed);
    }
    assert_true(sum == two->latency_ns);
    assert_true(fabs(two->latency_ns - one->latency_ns) <= allowed);
    assert_true(fabs(both) <= allowed);
    for (int kind = STAMP_NIC; kind <= STAMP_SERVER_TX; kind++)
        assert_true(one->stamp_ns[kind] == two->stamp_ns[kind]);
    if (isfinite(two->hosts_error_ns))
        return;
    assert_true(two->stage_ns[STAMP_NIC] == 0);
    assert_true((two->merged >> STAMP_NIC & 1) != 0);
}

// The run as the server's host and another one see it. The caller releases both.
static void build_two(const struct scenario_options *options, const struct client_host *host,
                      double error_ns, struct joined *one, struct joined *two)
{
    struct time_source clock = {
        .convert = convert_by_client, .context = host, .error_ns = error_ns};
    build(one, options);
    *two = (struct joined){0};
    scenario_build(&two->scenario, options);
    struct join_input input = input_of(two);
    input.client_clock = &clock;
    join_all(two, &input);
    assert_true(two->counts.hosts.apart && !one->counts.hosts.apart);
    assert_int_equal(two->counts.hosts.exchanges, one->lives.count);
    assert_int_equal(two->counts.hosts.negative_trips, 0);
    for (size_t i = 0; i < one->lives.count; i++) {
        assert_int_equal(one->lives.items[i].state, two->lives.items[i].state);
        if (host->step_ns == 0 || isfinite(two->lives.items[i].hosts_error_ns))
            compare_lives(&one->lives.items[i], &two->lives.items[i], host->rate);
    }
}

static void clocks_of_two_hosts_are_related(void **state)
{
    (void)state;
    const struct client_host hosts[] = {
        {.ahead_ns = INT64_C(-900000000000000), .rate = 61e-6, .step_at_ns = INT64_MAX},
        {.ahead_ns = 7, .rate = -250e-6, .step_at_ns = INT64_MAX},
    };
    struct scenario_options options = plain;
    options.gap_ns = 500000;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct joined one, two;
        build_two(&options, &hosts[i], 1, &one, &two);
        const struct two_hosts *found = &two.counts.hosts;
        assert_false(found->both_ways);
        assert_int_equal(found->unknown, 0);
        assert_int_equal(two.counts.disorder.violations, 0);
        assert_true(found->bound_p50_ns > 0 && found->bound_p99_ns < found->round_trip_ns[0]);
        assert_true(fabs(found->rate + hosts[i].rate) < 5e-6);
        release(&one);
        release(&two);
    }
}

static void a_step_costs_its_own_requests(void **state)
{
    (void)state;
    const struct client_host host = {
        .rate = 20e-6, .step_at_ns = INT64_C(40000000000), .step_ns = -5000000};
    struct scenario_options options = plain;
    options.gap_ns = 50000000;
    struct joined one, two;
    build_two(&options, &host, 1, &one, &two);
    assert_false(two.counts.hosts.both_ways);
    assert_int_equal(two.counts.hosts.gaps, 1);
    assert_in_range(two.counts.hosts.unknown, 1, two.lives.count / 100);
    release(&one);
    release(&two);
}

// Stamps that are wrong by more than the network takes say nothing of its two ways.
static void unrelated_clocks_merge_the_ways(void **state)
{
    (void)state;
    const struct client_host host = {.ahead_ns = 5000, .rate = 1e-6, .step_at_ns = INT64_MAX};
    struct joined one, two;
    build_two(&plain, &host, 20000, &one, &two);
    assert_true(two.counts.hosts.both_ways);
    assert_int_equal(two.counts.disorder.violations, 0);
    for (size_t i = 0; i < two.lives.count; i++)
        assert_true(two.lives.items[i].hosts_error_ns > 1e300);
    assert_string_equal(stage_name(STAMP_CLIENT_RX, UNDIVIDED_NETWORK), "network (both ways)");
    release(&one);
    release(&two);
}

// One port served two connections, one after the other; only their times show which is which.
static void ports_used_twice_are_told_apart_by_unrelated_clocks(void **state)
{
    (void)state;
    struct connection client[4] = {0}, server[4] = {0};
    const int64_t client_first[4] = {1000, 2000, 3000, 9000};
    int64_t server_first[4];
    const int64_t ahead = INT64_C(-777000000000);
    uint32_t other_end[4];
    for (unsigned i = 0; i < 4; i++) {
        client[i].id = server[i].id = i + 1;
        client[i].protocol = server[i].protocol = CONNECTION_TCP;
        client[i].local_port = server[i].peer_port = (uint16_t)(i == 3 ? 5002 : 5000 + i);
        client[i].peer_port = server[i].local_port = 80;
        server_first[i] = client_first[i] + ahead + 30;
    }
    assert_int_equal(
        match_unrelated_connections(client, 4, client_first, server, 4, server_first, other_end),
        0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(other_end[i], i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_of_two_hosts_are_related),
        cmocka_unit_test(a_step_costs_its_own_requests),
        cmocka_unit_test(unrelated_clocks_merge_the_ways),
        cmocka_unit_test(ports_used_twice_are_told_apart_by_unrelated_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
