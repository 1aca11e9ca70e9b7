// SPDX-License-Identifier: MIT
//
// What a diagnosis of a synthetic run (scenario.h) begins with: its calls, its server's timeline,
// its lifetimes.
#ifndef TESTS_ANALYSIS_DIAGNOSIS_SCENARIO_JOINED_H
#define TESTS_ANALYSIS_DIAGNOSIS_SCENARIO_JOINED_H

#include "analysis/lifetime/join.h"
#include "analysis/timeline/timeline.h"
#include "tests/analysis/diagnosis/scenario.h"

// The caller owns what it gets.
static inline void scenario_join(struct scenario *s, struct application_calls *calls,
                                 struct host_timeline *server, struct lifetime_array *lives)
{
    struct time_source clock = scenario_clock();
    struct join_counts counts;
    struct error err = {0};
    uint64_t damaged;
    assert_int_equal(
        application_calls_build(s->calls.items, s->calls.count, &clock, calls, &damaged, &err), 0);
    assert_int_equal(host_timeline_build(s->events.items, s->events.count, &clock, server, &err),
                     0);
    const struct join_input input = {.samples = s->samples.items,
                                     .sample_count = s->samples.count,
                                     .client_connections = s->client.items,
                                     .client_connection_count = s->client.count,
                                     .events = s->events.items,
                                     .event_count = s->events.count,
                                     .sockets = s->sockets.items,
                                     .socket_count = s->sockets.count,
                                     .calls = calls,
                                     .shim_connections = s->shim.items,
                                     .shim_connection_count = s->shim.count,
                                     .clock = clock};
    struct holdup_array holdups;
    assert_int_equal(join_lifetimes(&input, lives, &holdups, &counts, &err), 0);
    array_free(&holdups);
}

#endif
