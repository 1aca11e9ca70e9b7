// SPDX-License-Identifier: MIT
//
// Analyzes an interval of a watch: its segments of the capture and the one before them, in which
// requests that it answered may have arrived, and which says what an ordinary one is where the
// interval has few. A server that stood still for longer has answered requests of which nobody
// knows, by these segments, when they came, and one that is asked little has too few in them to
// compare with: then it is looked further back. Where all are asked much and nothing took long, of
// the segment before the interval only the last moments' messages are looked at. Of several servers
// each is judged by itself.
#ifndef EXPERIMENTS_WATCH_INTERVAL_ANALYSIS_H
#define EXPERIMENTS_WATCH_INTERVAL_ANALYSIS_H

#include <stdint.h>

#include "analysis/run/run_analyze.h"
#include "base/array.h"
#include "base/error.h"
#include "experiments/watch/excerpt.h"
#include "experiments/watch/held_segments.h"

// A server of which more segments did not tell when its requests came.
struct vain_server {
    uint32_t place; // application_place()
    unsigned until; // number of the segment until which looking back for it is left off
};

// A zeroed one is at the beginning.
struct interval_analysis {
    unsigned looked_at; // number of the last segment that was looked at, passed over or given up
    uint64_t given_up;  // segments that could not be looked at: they had made room, were too many
                        // for this machine, or could not be read
    bool messages_few;  // of the segments before the interval the last moments' messages suffice
    bool several;       // servers, in the interval before
    struct excerpt excerpt;
    struct ARRAY_OF(struct vain_server) vain; // one a place
    struct held_segments held; // those that were looked at last, until the next interval is
};

// As run_analyze(), of all segments since the last time up to that number; request->segments
// becomes what was looked at. Where the first of these are gone it begins with those that are
// there. Where analysis->excerpt has answers, these are all that the interval had, of which *out
// has an excerpt, but for the latency, which is that of all. alone: nothing was recorded just
// before that segment, so that only it is looked at; earlier ones since the last time count as
// given up.
int interval_analyze(struct interval_analysis *analysis, unsigned last, bool alone,
                     struct run_request *request, struct run_analysis *out, struct error *err);

// Of a segment's events; 0: they are not there.
uint64_t interval_segment_bytes(const char *capture_dir, unsigned segment);

void interval_analysis_free(struct interval_analysis *analysis);

#endif
