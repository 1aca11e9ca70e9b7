// SPDX-License-Identifier: MIT
//
// Load agents (Lancet §4.2): several processes that load one server together, each from a place of
// its own (network namespace, cores). This header describes one agent, as people write it:
//
//     KIND[,name=N][,rate=R][,connections=N][,threads=N][,cores=LIST][,netns=PID|PATH|,link=FILE]
//
//     latency      few requests, one in flight per connection, sockets that busy-poll
//     symmetric    loads and measures: as `taillight load` without agents does
#ifndef LOADGEN_AGENT_H
#define LOADGEN_AGENT_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum agent_kind { AGENT_THROUGHPUT, AGENT_LATENCY, AGENT_SYMMETRIC };

enum { AGENT_NAME_BYTES = 32, AGENTS_MAX = 64, AGENT_BUSY_POLL_US = 50 };

struct agent_spec {
    char name[AGENT_NAME_BYTES]; // unique; agent1, agent2, ... if none is given
    enum agent_kind kind;
    double rate;          // requests per second; 0: its share of the total
    uint64_t connections; // 0: the load's number
    uint64_t threads;     // 0: the load's number
    uint64_t depth;       // in flight per connection; latency: 1
    uint64_t seed;        // its own, derived from the load's seed
    bool has_cores;
    cpu_set_t cores;
    char netns[256]; // path of a network namespace; empty: this one
    // file that describes the link to another host (`taillight link`); empty: this host
    char link[256];
};

const char *agent_kind_name(enum agent_kind kind);
// Whether the requests of an agent of that kind count in the percentiles.
bool agent_kind_measures(enum agent_kind kind);

// Parses one agent. In cores, '+' stands for the comma of a list ("cores=0-2+5"). Does no I/O.
// ERROR_INPUT names the part that is wrong.
int agent_spec_parse(const char *text, struct agent_spec *spec, struct error *err);

// Fills in what depends on the other agents: names, connections, threads, depths, seeds, and the
// shares of `rate` (latency agents without a rate take 1000 requests/s or less; the rest is shared
// equally among the others; rate 0: every agent must name its own). Stores the total rate.
// ERROR_INPUT: two agents of one name, none that measures, or rates that do not add up.
int agent_specs_resolve(struct agent_spec *specs, size_t count, uint64_t connections,
                        uint64_t threads, uint64_t depth, uint64_t seed, double *rate,
                        struct error *err);

#endif
