// SPDX-License-Identifier: MIT
//
// The controller of load agents: starts them, gives each its plan, lets them begin together, keeps
// their links, collects what they measured. An agent that is lost (died, was killed, fell silent)
// ends the run of all, and is named.
#ifndef LOADGEN_AGENT_FLEET_H
#define LOADGEN_AGENT_FLEET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loadgen/agents/agent.h"
#include "loadgen/engine/engine.h"
#include "workloads/workload.h"

struct fleet_settings {
    const struct agent_spec *specs; // resolved
    size_t count;
    const struct workload *workload;
    const char *server; // as the agents will look it up, each in its place
    uint64_t duration_ns, timeout_ns, reconnect_ns; // as in struct engine_settings
    enum stamp_mode stamps;
    double quantile, confidence; // the target percentile's
    // As in struct engine_settings.
    void (*announce)(void *context, uint64_t begin_ns);
    void *announce_context;
};

struct agent_outcome {
    const struct agent_spec *spec;
    char lost[300];              // why there is no result; empty: there is one
    json_t *report;              // what the agent says of its own run (docs/load-json.md)
    struct engine_result result; // without samples where the agent does not measure
};

struct fleet_outcome {
    struct agent_outcome agents[AGENTS_MAX];
    size_t count;
    bool interrupted;       // by SIGINT or SIGTERM
    double start_spread_us; // between the first agent to begin and the last, each by its own clock
    double start_bound_us;  // how far those clocks may be off against one another; 0: one host
};

// Runs them all, to the end. Fails when the run could not begin: the text names the agent. Whatever
// comes, no agent is left. The caller frees the outcome.
int fleet_run(const struct fleet_settings *settings, struct fleet_outcome *outcome,
              struct error *err);
void fleet_outcome_free(struct fleet_outcome *outcome);

#endif
