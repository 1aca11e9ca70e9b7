// SPDX-License-Identifier: MIT
//
// The controller of load agents: starts them, sends each its plan, lets them begin together, serves
// their links, and collects their measurements. When an agent is lost (died, was killed, fell
// silent) the whole load ends, with an error that names it.
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
    json_t *report;              // the agent's own report on its load (docs/load-json.md)
    struct engine_result result; // without samples if the agent does not measure
};

struct fleet_outcome {
    struct agent_outcome agents[AGENTS_MAX];
    size_t count;
    bool interrupted; // by SIGINT or SIGTERM
    // time between the begin of the first agent and of the last, each by its own clock
    double start_spread_us;
    // how far those clocks may be off against one another; 0: all on one host
    double start_bound_us;
};

// Drives all agents to their end. Fails when the load could not begin: the text names the agent. In
// every case no agent is left running. The caller frees the outcome.
int fleet_run(const struct fleet_settings *settings, struct fleet_outcome *outcome,
              struct error *err);
void fleet_outcome_free(struct fleet_outcome *outcome);

#endif
