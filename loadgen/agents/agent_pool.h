// SPDX-License-Identifier: MIT
//
// What several agents measured, as one result: percentiles are taken over the pooled samples, never
// averaged over agents (Lancet §4.3 averages; the average of percentiles is no percentile).
#ifndef LOADGEN_AGENTS_AGENT_POOL_H
#define LOADGEN_AGENTS_AGENT_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"
#include "base/error.h"
#include "loadgen/agents/agent_fleet.h"
#include "loadgen/engine/engine_result.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/method.h"

// Pools the results of the agents that measure: their samples in the order of their intended times,
// their counts added up; and the connections of all agents, with new unique ids. Lost agents are
// left out; if nothing remains this is ERROR_INCONCLUSIVE. engine_result_free frees.
int agent_pool(const struct fleet_outcome *outcome, struct engine_result *pool, struct error *err);

// --- what each agent measured --------------------------------------------------------------------
// The target percentile of each agent, over everything it measured for a pool, and which agents
// disagree. A single round would be too short: the agents would disagree by chance, or have no
// percentile.

struct agent_latencies ARRAY_OF(double); // us from the intended time; infinite when never answered

// The samples of each agent, in the order in which they were due; none for agents that only load.
struct agents_measured {
    struct agent_latencies agents[AGENTS_MAX];
};

// Adds the result of one round of agents. first: the first round of a pool, which clears what was
// there. ERROR_FAILED: out of memory.
int agents_measured_add(struct agents_measured *measured, const struct fleet_outcome *fleet,
                        bool first, struct error *err);
void agents_measured_free(struct agents_measured *measured);

// The target percentile of one agent, with its confidence interval, in us.
struct agent_finding {
    const char *name;
    double value, low, high; // NaN: unknown
};

// Fills in a finding for each agent of the fleet that measures, without the warm-up that the method
// removes. There are none where the rate changes by plan. findings: room for AGENTS_MAX.
int agents_measured_judge(const struct agents_measured *measured, const struct fleet_outcome *fleet,
                          const struct method_settings *settings, struct agent_finding *findings,
                          size_t *count, struct error *err);

// Two agents whose intervals are disjoint, so they did not measure the same thing.
struct agent_disagreement {
    size_t low, high; // indices of the two findings
};

// Finds all such pairs and returns their number; at most `room` are stored.
size_t agent_disagreements(const struct agent_finding *findings, size_t count,
                           struct agent_disagreement *pairs, size_t room);

// --- the agents' own word ------------------------------------------------------------------------
// What the agents' own reports (docs/load-json.md) say about how well they sent: the part of a
// verdict on their pool that cannot be seen in its samples.

// For one round, or all rounds of a pool.
struct agents_word {
    struct load_summary troubles; // reasons, of the last round that had any; ok: none had
    enum method_finding client, arrivals;
};

// Adds the reports of one round. first: the pool's first round.
void agents_hear(struct agents_word *word, const struct fleet_outcome *fleet, bool first);

#endif
