// SPDX-License-Identifier: MIT
//
// The second step of an analysis: from a run's logs to its requests' lifetimes, and to what the
// server's cores did meanwhile.
#ifndef ANALYSIS_RUN_LIFETIMES_H
#define ANALYSIS_RUN_LIFETIMES_H

#include "analysis/lifetime/turns.h"
#include "analysis/run/run_analysis.h"
#include "analysis/run/input/run_input.h"
#include "analysis/run/run_trace_events.h"
#include "base/progress.h"

// What stands in for logs that a run lacks. The input's records point into it: it is freed after
// them.
struct run_stand_ins {
    struct event_array traced; // of a processor's trace, for the events
    struct turns turns;        // of the server's calls, for a client's samples
    // Only those turns that were answered between these (host time; 0, 0: all).
    int64_t answered_after_ns, answered_until_ns;
};
void run_stand_ins_free(struct run_stand_ins *stand_ins);

// Fills run's lifetimes, and what of its evidence comes from the logs.
int run_lifetimes_build(struct run_analysis *run, struct run_input *input,
                        struct run_stand_ins *stand_ins, struct progress *progress,
                        struct error *err);

#endif
