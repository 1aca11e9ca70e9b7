// SPDX-License-Identifier: MIT
//
// A synthetic run (scenario.h) and its join, to be looked at. Header-only: each test binary stands
// alone.
#ifndef TESTS_ANALYSIS_LIFETIME_JOINED_H
#define TESTS_ANALYSIS_LIFETIME_JOINED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/lifetime/join.h"
#include "tests/analysis/diagnosis/scenario.h"

struct joined {
    struct scenario scenario;
    struct application_calls calls;
    struct lifetime_array lives;
    struct holdup_array holdups;
    struct join_counts counts;
};

static const struct scenario_options plain = {
    .requests = 2000, .connections = 8, .gap_ns = 20000, .pipelined = 1, .seed = 1};

static inline struct join_input input_of(struct joined *j)
{
    struct scenario *s = &j->scenario;
    uint64_t damaged;
    struct error err = {0};
    struct time_source clock = scenario_clock();
    assert_int_equal(
        application_calls_build(s->calls.items, s->calls.count, &clock, &j->calls, &damaged, &err),
        0);
    assert_int_equal(damaged, 0);
    return (struct join_input){.samples = s->samples.items,
                               .sample_count = s->samples.count,
                               .client_connections = s->client.items,
                               .client_connection_count = s->client.count,
                               .events = s->events.items,
                               .event_count = s->events.count,
                               .sockets = s->sockets.items,
                               .socket_count = s->sockets.count,
                               .calls = &j->calls,
                               .shim_connections = s->shim.items,
                               .shim_connection_count = s->shim.count,
                               .clock = clock};
}

static inline void join_all(struct joined *j, const struct join_input *input)
{
    struct error err = {0};
    assert_int_equal(join_lifetimes(input, &j->lives, &j->holdups, &j->counts, &err), 0);
    assert_int_equal(j->lives.count, input->sample_count);
}

static inline void build(struct joined *j, const struct scenario_options *options)
{
    *j = (struct joined){0};
    scenario_build(&j->scenario, options);
    struct join_input input = input_of(j);
    join_all(j, &input);
}

static inline void release(struct joined *j)
{
    scenario_free(&j->scenario);
    array_free(&j->calls);
    array_free(&j->lives);
    array_free(&j->holdups);
}

#endif
