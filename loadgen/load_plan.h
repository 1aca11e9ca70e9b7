// SPDX-License-Identifier: MIT
//
// What `taillight load` will do, made from its options. Everything that can be refused before a
// connection is made is refused here.
#ifndef LOADGEN_LOAD_PLAN_H
#define LOADGEN_LOAD_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/progress.h"
#include "loadgen/agents/agent.h"
#include "loadgen/client/server_address.h"
#include "loadgen/client/server_url.h"
#include "loadgen/client/tls_settings.h"
#include "loadgen/engine/engine.h"
#include "loadgen/recording/recording.h"
#include "loadgen/load_goal.h"
#include "loadgen/load_options.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/method.h"
#include "workloads/protocols/login.h"
#include "workloads/workload.h"

// The plan made from the options.
// What is said once the server is connected and the load begins.
struct load_phase {
    struct progress *progress;
    char text[500]; // empty: it was said
    bool announce;  // the instant too, on stdout, for a program
};

struct load_plan {
    struct load_options options;
    struct server_address server;
    struct server_url url; // what --server said besides the address
    struct login login;
    struct login_words login_words;
    struct tls_settings tls;
    struct workload workload;
    char arrivals[4200];        // the arrivals, in words
    char pattern[500];          // the pattern, in words
    struct recording recording; // the recording to replay; without requests: arrivals are drawn
    char warning[1600];         // of what is not replayed; empty: there is nothing to say
    struct distribution think;  // in ns, if --think says so
    enum stamp_mode stamps;
    uint32_t stamps_every; // one send call in so many; 0: each
    double quantile;       // the target percentile, or the SLO's
    // Of --sweep; of --slo, the range to search: `to` may be +infinity, and `step` is how close the
    // result and a rate that misses it must be (a difference, or with geometric a factor).
    struct sweep_range sweep;
    struct slo slo;
    struct agent_spec *agents; // as asked for; NULL: no agents, this process loads
    size_t agent_count;
    struct progress progress;
    struct load_phase *phase; // the caller's
};

// Options with nothing given, and a workload to be freed with load_plan_free.
void load_plan_init(struct load_plan *plan);
void load_plan_free(struct load_plan *plan);

// Checks the options, reads the workload's file, resolves the server and asks it
// whether it speaks the protocol, and draws a seed if none is given. ERROR_INPUT names the option
// and the values it takes.
int load_plan_make(struct load_plan *plan, int positional, char **argv, struct error *err);

// How long a load lasts at that rate, of which so much is asked for: a recording may end before.
uint64_t load_plan_duration_ns(const struct load_plan *plan, double rate, uint64_t duration_ns);

// What this load is, said when the engine announces its begin: whose server cannot be connected is
// not loaded. Until then a terminal says that it is being connected.
void load_plan_phase(struct load_plan *plan, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Says it, once.
void load_phase_say(struct load_phase *phase);

// The settings of the engine and the method for this plan, at its own rate and duration.
struct engine_settings load_plan_engine(const struct load_plan *plan);
struct method_settings load_plan_method(const struct load_plan *plan);
struct load_facts load_plan_facts(const struct load_plan *plan);

#endif
