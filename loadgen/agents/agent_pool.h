// SPDX-License-Identifier: MIT
//
// What several agents measured, as one result: percentiles are taken over the pooled samples, never
// averaged over agents (Lancet §4.3 averages; the average of percentiles is no percentile).
#ifndef LOADGEN_AGENT_POOL_H
#define LOADGEN_AGENT_POOL_H

#include <stddef.h>

#include "base/error.h"
#include "loadgen/agents/agent_fleet.h"
#include "loadgen/engine/engine_result.h"

// Pools the results of the agents that measure: their samples in the order of their intended times,
// their counts added up; and the connections of all agents, with new unique ids. Lost agents are
// left out; if nothing remains this is ERROR_INCONCLUSIVE. engine_result_free frees.
int agent_pool(const struct fleet_outcome *outcome, struct engine_result *pool, struct error *err);

#endif
