// SPDX-License-Identifier: MIT
//
// Load until the method is satisfied: rounds of load, pooled, each as long as the interval still
// seems to need, until every check passes or the budget is spent (Lancet §4.3, figure 4). Before
// anything is measured, rounds are thrown away until the load, the client and the arrivals are
// as asked for; from then on every round counts.
#ifndef LOADGEN_METHOD_METHOD_ROUNDS_H
#define LOADGEN_METHOD_METHOD_ROUNDS_H

#include <stdint.h>

#include "base/error.h"
#include "loadgen/engine/engine.h"
#include "loadgen/engine/live_view.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/method.h"

// --- the machine's time --------------------------------------------------------------------------
// The share of the machine's time that its hypervisor gave to others during the load (steal,
// /proc/stat): a latency that changes along with it may be the machine's doing, not the server's.

// Since boot, over all CPUs, in clock ticks. Zeroed: unknown.
struct machine_time {
    uint64_t stolen, all;
};

struct machine_time machine_time_read(void);

// The share of the time since `before` that was stolen; 0 where it is unknown.
double machine_stolen_since(const struct machine_time *before);

struct rounds;

// Another way to load than this process's engine (agents), with its own verdict.
struct rounds_source {
    // Loads once, for so long, with that seed; first: nothing was loaded before.
    int (*take)(void *context, uint64_t duration_ns, uint64_t seed, bool first,
                struct engine_result *round, struct error *err);
    // Judges the pool, which includes the latest round: its summary, with all reasons, and the
    // method.
    int (*judge)(void *context, struct rounds *rounds, struct error *err);
    void *context;
};

struct rounds_settings {
    struct engine_settings engine; // its duration is each round's own
    struct rounds_source source;   // used instead of the engine; zeroed: none
    struct method_settings method; // its budget_s is all rounds' load together
    uint64_t seed;
    struct live_view *view; // shown what is waited for; NULL: no live view
};

struct rounds {
    struct engine_result pool;      // what was measured; connections are those of one round
    struct connection *connections; // of all rounds, for the log
    uint32_t connection_count;
    unsigned stabilising, measured; // rounds thrown away, rounds in the pool
    uint64_t duration_ns;           // of the pool's schedules together
    struct machine_time began;
    const char *stop;            // "interval", "budget", "load" or "interrupted"
    struct load_summary summary; // of the pool, with the method's reasons
    struct method method;        // of the pool
};

// Runs them. Fails only when a round could not begin, or out of memory. The caller frees.
int rounds_run(const struct rounds_settings *settings, struct rounds *rounds, struct error *err);

// Appends a round of that duration to the pool (zeroed: empty). Takes over the first round's
// memory; otherwise `round` stays the caller's. ERROR_FAILED: out of memory.
int rounds_add(struct rounds *rounds, struct engine_result *round, uint64_t duration_ns,
               struct error *err);
void rounds_free(struct rounds *rounds);

#endif
