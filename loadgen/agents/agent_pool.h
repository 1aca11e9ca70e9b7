// SPDX-License-Identifier: MIT
//
// What several agents measured, as one run: percentiles are taken over the pooled samples, never
// averaged over agents (Lancet §4.3 averages; the average of percentiles is no percentile).
#ifndef LOADGEN_AGENT_POOL_H
#define LOADGEN_AGENT_POOL_H

#include <stddef.h>

#include "base/error.h"
#include "loadgen/agents/agent_fleet.h"
#include "loadgen/engine.h"

// Pools what the agents that measure brought: their samples in the order of their intended times,
// their counts added up; and the connections of all agents, with ids of their own. Agents that are
// lost are left out; without any other this is ERROR_INCONCLUSIVE. engine_result_free frees.
int agent_pool(const struct fleet_outcome *outcome, struct engine_result *pool, struct error *err);

// The target percentile as one agent found it, with its confidence interval, in us.
struct agent_finding {
    const char *name;
    double value, low, high; // NaN: not known
};

// Two agents whose intervals are disjoint: they did not measure the same thing.
struct agent_disagreement {
    size_t low, high; // which findings
};

// Finds all such pairs. Returns how many; at most `room` are stored.
size_t agent_disagreements(const struct agent_finding *findings, size_t count,
                           struct agent_disagreement *pairs, size_t room);

#endif
