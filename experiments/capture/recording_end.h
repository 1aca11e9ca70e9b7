// SPDX-License-Identifier: MIT
//
// How a recording of perf's ended, where that was not as it was to: perf died, could not write or
// does not answer, or the recording had reached its bounds. That costs the rest of the recording,
// and nothing else of the capture.
#ifndef EXPERIMENTS_CAPTURE_RECORDING_END_H
#define EXPERIMENTS_CAPTURE_RECORDING_END_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct recording_end {
    bool broken; // perf is gone, or does not answer
    // Why it ended before it was to, and when (CLOCK_MONOTONIC_RAW); "": it did not.
    char why[600];
    int64_t at_ns;
};

// The first reason is kept.
void recording_end_early(struct recording_end *end, const char *why);
void recording_end_broken(struct recording_end *end, const struct error *problem);

// Adds "ended" to what is said of the recording, where there is something to say.
void recording_end_say(const struct recording_end *end, json_t *document);

#endif
