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
#include "base/tsc_rate.h"
#include "loadgen/agents/agent.h"
#include "loadgen/engine/engine.h"
#include "loadgen/engine/engine_result.h"
#include "workloads/workload.h"

struct tls_settings;

struct fleet_settings {
    const struct agent_spec *specs; // resolved
    size_t count;
    const struct workload *workload;
    const struct login *login;
    const struct tls_settings *tls;
    const char *server; // as the agents will look it up, each in its place
    bool cluster;       // as in struct engine_settings; so is
    const char *sentinel;
    uint64_t duration_ns, timeout_ns, reconnect_ns, session; // as in struct engine_settings
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

// How the clock of an agent on another host relates to the controller's. The controller asks for it
// over their link several times; the shortest round trip bounds the error (Cristian 1989). So
// agents that share no clock begin together, within a stated spread, and their measurements get one
// time axis.
enum { AGENT_CLOCK_TRIPS = 16 };

struct agent_clock {
    unsigned trips; // questions that were answered
    int64_t asked_ns;
    int64_t offset_ns; // the agent's CLOCK_MONOTONIC less ours
    uint64_t trip_ns;  // of the shortest round trip
    bool asked;        // a question is sent and not yet answered
};

// CLOCK_MONOTONIC of this host.
int64_t agent_clock_now_ns(void);

// To be called when a question has been sent, and when its answer has come.
void agent_clock_asked(struct agent_clock *clock);
void agent_clock_answered(struct agent_clock *clock, int64_t at_ns);

// How far offset_ns may be off: half the shortest round trip.
uint64_t agent_clock_bound_ns(const struct agent_clock *clock);

// Converts the stamps of an agent on another clock to this host's TSC axis, on which the agreed
// instant is begin_tsc and the rate tsc_hz. Its kernel's and NIC's stamps, which are in its
// CLOCK_REALTIME, become this host's by result->clock and `here`, which follow both hosts' clocks;
// where either lacks (here may be NULL) they are removed and counted as missing, and stamps_why
// says so.
void agent_clock_rebase(struct engine_result *result, uint64_t begin_tsc, double tsc_hz,
                        const struct clock_knot_array *here);

#endif
