// SPDX-License-Identifier: MIT
//
// How much of a run is exported for ui.perfetto.dev: a run of 10 s at 20,000 requests/s is 190 MB,
// and who asked for one message wants to see what went on while that was under way.
#ifndef ANALYSIS_EXPORT_PERFETTO_EXTENT_H
#define ANALYSIS_EXPORT_PERFETTO_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/run/run_analysis.h"

enum perfetto_extent {
    PERFETTO_RUN,      // all of it
    PERFETTO_WINDOWS,  // the windows of the run's diagnoses
    PERFETTO_MESSAGES, // the moments in which one of the messages that they explain was under way
};

// In order of time and disjoint.
struct perfetto_moments {
    struct time_range_array spans;
    bool all; // everything, whatever the spans are
};

// The caller frees out->spans with array_free, also after a failure (-1: no memory).
int perfetto_moments_of(const struct run_analysis *run, enum perfetto_extent extent,
                        struct perfetto_moments *out);

// Whether any of [begin_ns, end_ns] lies in them.
bool perfetto_moments_have(const struct perfetto_moments *moments, int64_t begin_ns,
                           int64_t end_ns);

#endif
