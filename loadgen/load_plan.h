// SPDX-License-Identifier: MIT
//
// What `taillight load` was asked for: its options, and the plan they come to. Everything that can
// be refused before a connection is made is refused here.
#ifndef LOADGEN_LOAD_PLAN_H
#define LOADGEN_LOAD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"
#include "base/progress.h"
#include "loadgen/agents/agent.h"
#include "loadgen/client/server_address.h"
#include "loadgen/engine/engine.h"
#include "loadgen/engine/recording.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/method.h"
#include "loadgen/slo.h"
#include "loadgen/sweep_range.h"
#include "workloads/workload.h"

struct load_options {
    const char *server, *protocol, *rate_text, *workload, *arrivals, *stamps, *samples, *target;
    const char *sweep, *slo, *out, *hgrm;
    double rate; // of rate_text; INFINITY: max, a closed loop
    double confidence;
    uint64_t threads, connections, depth, duration_ns, interval_ns, max_duration_ns, seed,
        timeout_ns, reconnect_ns;
    uint64_t repetitions;
    const char *restart;
    struct option_list agents;
    bool prepare, announce, sleep, json, quiet;
};

extern const struct option_spec load_plan_options[]; // of struct load_options

// What the options come to.
struct load_plan {
    struct load_options options;
    struct server_address server;
    struct workload workload;
    char arrivals[4200];        // what they come to, for people
    char pattern[500];          // the same
    struct recording recording; // no requests: arrivals are drawn
    enum stamp_mode stamps;
    double quantile; // the target's, or the SLO's
    // Of --sweep; of --slo, where to search: `to` may be +infinity, and `step` is how near to
    // what misses it a rate must come (added to it, or geometric: multiplied with it).
    struct sweep_range sweep;
    struct slo slo;
    struct agent_spec *agents; // as asked for; NULL: this process loads
    size_t agent_count;
    struct progress progress;
};

// Options none of which is given, and a workload to be freed with load_plan_free.
void load_plan_init(struct load_plan *plan);
void load_plan_free(struct load_plan *plan);

// Checks the options, reads the workload's file, resolves the server, draws a seed when none is
// given. ERROR_INPUT names the option and what it takes.
int load_plan_make(struct load_plan *plan, int positional, char **argv, struct error *err);

// What the engine and the method are told for this plan, at its own rate and duration.
struct engine_settings load_plan_engine(const struct load_plan *plan);
struct method_settings load_plan_method(const struct load_plan *plan);
struct load_facts load_plan_facts(const struct load_plan *plan);

#endif
