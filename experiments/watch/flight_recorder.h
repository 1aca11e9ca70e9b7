// SPDX-License-Identifier: MIT
//
// Keeps what was recorded around a slow request: of a capture in segments that goes on, the latest
// ones become a folder of their own, which `analyze` and `report` open. The oldest such folders
// make room for new ones.
#ifndef EXPERIMENTS_WATCH_FLIGHT_RECORDER_H
#define EXPERIMENTS_WATCH_FLIGHT_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/run/run_analysis.h"
#include "base/error.h"
#include "experiments/common/run_folder.h"

struct flight_recorder {
    const char *folder;        // that the saved ones are made in; NULL: nothing is saved
    uint64_t saves;            // how many are kept at most
    bool any_trigger;          // there is one:
    int quantile;              // which of latency_quantiles
    double above_ns;           // beyond which the records are saved
    uint64_t saved, gone;      // how many were, and how many of these made room since
    char path[RUN_PATH_BYTES]; // of the latest
};

// Reads ">5ms" (any request slower than that), or "p99>2ms" with one of the percentiles that a
// report has. ERROR_INPUT says what is wrong with it.
int flight_recorder_trigger(struct flight_recorder *recorder, const char *text, struct error *err);

// Whether these requests are slow enough.
bool flight_recorder_wants(const struct flight_recorder *recorder, const struct run_analysis *run);

// Makes <folder>/<UTC time> of the segments from_segment to segment (their numbers) of the capture
// in capture_dir. What it cannot do is ERROR_FAILED, and leaves nothing behind.
int flight_recorder_save(struct flight_recorder *recorder, const char *capture_dir,
                         unsigned from_segment, unsigned segment, int64_t from_ns,
                         struct error *err);

#endif
