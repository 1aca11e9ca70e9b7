// SPDX-License-Identifier: MIT
//
// Did the requests leave as scheduled? Compares the gaps between sends (from the kernel's TX stamps
// if there are any, else from this program's own time) with the arrival process; and determines how
// late this client was.
//
// A send costs a few microseconds, so two requests cannot leave closer than that: a share
// F(cost) of the gaps is stretched, and the distance to the process cannot be smaller. That
// allowance is measured, from sends that had to queue behind one another, and reported.
#ifndef LOADGEN_METHOD_METHOD_ARRIVALS_H
#define LOADGEN_METHOD_METHOD_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "loadgen/engine/engine_result.h"
#include "loadgen/method/method_anderson_darling.h"
#include "workloads/distribution.h"
#include "workloads/rate_pattern.h"

struct arrivals {
    bool judged; // false: too few gaps
    bool right;
    enum stamp_source source; // of the gaps: STAMP_SOFTWARE (or hardware), or STAMP_USER
    size_t back_to_back;      // sends that queued behind another
    double back_to_back_min_us, back_to_back_us; // the least of those gaps, and their median
    size_t gaps, gaps_tested;   // of too many gaps only this many are compared with the process
    double mean_us;             // of the gaps
    double variation;           // their coefficient of variation
    struct exponential_fit fit; // of exponential arrivals; else its count is 0
    // Exponential: Kolmogorov-Smirnov. Else the same with leave to be off by a tenth of the mean
    // gap (of a recording: without) and the cost of a send, so that processes with steps (fixed)
    // can be judged too.
    double distance;
    double best;      // the least distance that sending one after the other allows, plus 0.01
    double tolerance; // the greatest distance that is still called right
};

// What the sends should be: gaps of the shape of `process`, scaled to `rate` per second, and moved
// in time so that they follow `pattern` over duration_s.
struct arrivals_asked {
    const struct distribution *process;
    double rate;
    const struct rate_pattern *pattern;
    double duration_s;
    double batch_us; // by how much a request may have been late by the plan, and so a gap be off
};

// Looks at the sent requests of a run (of one with a fan-out at its logical requests, as
// logical_requests_make has them: their gaps are drawn, and the requests of one leave in a row).
// Where the rate changes, gaps are taken in operational time
// (rate_pattern.h), in which the process is stationary again. ERROR_FAILED: out of memory.
int arrivals_judge(const struct engine_result *run, const struct arrivals_asked *asked,
                   struct arrivals *result, struct error *err);

struct client_bias {
    bool judged;
    bool biased;
    double lateness_p50_us, lateness_p99_us; // beyond what sends queued before explain
    double reading_p99_us;    // how much longer than the median a reply lay unread; NaN: no stamps
    double target_us;         // the target percentile as measured ...
    double target_sent_us;    // ... without the lateness in sending ...
    double target_without_us; // ... and without that in reading, too
    double share; // of the target percentile that is this client's own lateness, of both kinds
    double idle;  // fraction of the run spent finding nothing to do
    bool out_of_cpu;
    char stood[120]; // standstill_words()
};

// How late the client sent beyond what its queue of sends explains (an ideal client sends each
// request when it is due, or when the sends before it are done), and how late it read the replies,
// by the kernel's RX stamps if there are any. latencies: of each request from its intended time, in
// us; infinite when never answered. With a fan-out the target is that of logical requests, and how
// late is looked at of each request. ERROR_FAILED: out of memory.
int client_bias_judge(const struct engine_result *run, const double *latencies, double q,
                      double idle, struct client_bias *result, struct error *err);

#endif
