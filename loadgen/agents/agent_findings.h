// SPDX-License-Identifier: MIT
//
// The target percentile as each agent found it, over all that it measured for a pool, and which
// agents disagree. A round of its own is too short to tell: by chance, or because it is unknown.
#ifndef LOADGEN_AGENT_FINDINGS_H
#define LOADGEN_AGENT_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"
#include "base/error.h"
#include "loadgen/agents/agent_fleet.h"
#include "loadgen/method/method.h"

struct agent_latencies ARRAY_OF(double); // us from the intended time; never answered: infinite

// What each agent measured, in the order in which it was due; of those that only load, nothing.
struct agents_measured {
    struct agent_latencies agents[AGENTS_MAX];
};

// Adds what a run of the agents brought; first: of a pool that begins anew. ERROR_FAILED: out of
// memory.
int agents_measured_add(struct agents_measured *measured, const struct fleet_outcome *fleet,
                        bool first, struct error *err);
void agents_measured_free(struct agents_measured *measured);

// The target percentile as one agent found it, with its confidence interval, in us.
struct agent_finding {
    const char *name;
    double value, low, high; // NaN: not known
};

// Fills in a finding for each agent of the fleet that measures, as the method takes it of a run:
// without the warm-up. None where the rate is to change. findings: room for AGENTS_MAX.
int agents_measured_judge(const struct agents_measured *measured, const struct fleet_outcome *fleet,
                          const struct method_settings *settings, struct agent_finding *findings,
                          size_t *count, struct error *err);

// Two agents whose intervals are disjoint: they did not measure the same thing.
struct agent_disagreement {
    size_t low, high; // which findings
};

// Finds all such pairs. Returns how many; at most `room` are stored.
size_t agent_disagreements(const struct agent_finding *findings, size_t count,
                           struct agent_disagreement *pairs, size_t room);

#endif
