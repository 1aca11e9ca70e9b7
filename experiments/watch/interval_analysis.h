// SPDX-License-Identifier: MIT
//
// Analyzes an interval of a watch: its segments of the capture and the one before them, in which
// requests that it answered may have arrived, and which says what an ordinary one is where the
// interval has few. A server that stood still for longer has answered requests of which nobody
// knows, by these segments, when they came, and one that is asked little has too few in them to
// compare with: then it is looked further back.
#ifndef EXPERIMENTS_WATCH_INTERVAL_ANALYSIS_H
#define EXPERIMENTS_WATCH_INTERVAL_ANALYSIS_H

#include "analysis/run/run_analyze.h"
#include "base/error.h"

// A zeroed one is at the beginning.
struct interval_analysis {
    unsigned vain_until; // number of the segment until which looking back is left off
};

// As run_analyze(); request->segments becomes what was looked at.
int interval_analyze(struct interval_analysis *analysis, struct run_request *request,
                     struct run_analysis *out, struct error *err);

#endif
