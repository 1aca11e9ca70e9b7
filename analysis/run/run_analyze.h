// SPDX-License-Identifier: MIT
//
// The analysis of one run folder, from its logs to the verdict.
#ifndef ANALYSIS_RUN_ANALYZE_H
#define ANALYSIS_RUN_ANALYZE_H

#include "analysis/run/run_analysis.h"
#include "analysis/run/input/run_segments.h"
#include "base/progress.h"

// What is asked of a run folder. Everything but the folder may be left out.
struct run_request {
    const char *run_dir;
    const char *load; // which of several loads is looked at (run_loads.h); NULL: the first
    const struct diagnosis_slice_array *slices;   // to diagnose, the first for the verdict; none:
                                                  // what the experiment asks for
    const struct diagnosis_slice_array *profiled; // that will be compared (compare/run_profile.h):
                                                  // their functions are decoded as well
    const char *categories;                       // a file that takes precedence over the run's own
    // Of a capture in segments that goes on (watch): only these; and of a capture alone only the
    // requests that were answered between these (host time; 0, 0: all).
    struct run_segment_range segments;
    int64_t answered_after_ns, answered_until_ns;
    // Explain whole lifetimes alone: neither their parts, nor what the servers' threads did, nor
    // what slow requests share, nor views; and against few ordinary ones (reference_taken).
    bool whole_alone;
};

// Reads a run folder and fills *out; the caller frees. Bad or missing files are ERROR_INPUT. It is
// the most expensive step of all, and done once for a run: what several want of the same run is
// asked for together.
int run_analyze(const struct run_request *request, struct progress *progress,
                struct run_analysis *out, struct error *err);

#endif
