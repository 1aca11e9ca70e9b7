// SPDX-License-Identifier: MIT
//
// Keeps what was recorded around slow requests: of a capture in segments that goes on, the latest
// ones become a folder of their own, which `analyze` and `report` open. The oldest such folders
// make room for new ones.
#ifndef EXPERIMENTS_WATCH_FLIGHT_RECORDER_H
#define EXPERIMENTS_WATCH_FLIGHT_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "analysis/run/run_analysis.h"
#include "analysis/run/input/run_segments.h"
#include "base/error.h"
#include "experiments/common/run_folder.h"
#include "experiments/watch/slow_windows.h"

struct flight_recorder {
    const char *folder;    // that the saved ones are made in; NULL: nothing is saved
    uint64_t saves;        // how many are kept at most
    bool any_trigger;      // there is one:
    int quantile;          // which of latency_quantiles
    double above_ns;       // beyond which the records are saved
    int64_t slow_ended_ns; // when the latest stretch of slow requests had ended, host time
    uint64_t saved, gone;  // how many were, and how many of these made room since
    uint64_t shared;       // stretches of slow requests that share a window with others
    uint64_t lengthened;   // windows that got what went on of their stretch in the next interval
    char path[RUN_PATH_BYTES]; // of the latest
    atomic_bool saving;        // it is not whole yet: whoever ends meanwhile removes it
    struct slow_window latest; // what it has, and of which segments
    struct run_segment_range latest_segments;
    bool latest_is_longer; // it was lengthened
};

// Reads ">5ms" (any request slower than that), or "p99>2ms" with one of the percentiles that a
// report has. ERROR_INPUT says what is wrong with it.
int flight_recorder_trigger(struct flight_recorder *recorder, const char *text, struct error *err);

// What to save of an interval, from from_ns to until_ns, with these requests, or where there are
// any with these answers: a window for each stretch of too slow ones, at most as many as are kept;
// for a percentile that is too high, all of it. The caller frees *out. No memory is ERROR_FAILED.
int flight_recorder_windows(struct flight_recorder *recorder, const struct run_analysis *run,
                            const struct answer_array *answers, int64_t from_ns, int64_t until_ns,
                            struct slow_windows *out, struct error *err);

// Makes <folder>/slow-<UTC time>-<how many were saved> of these segments of the capture in
// capture_dir, of which an analysis looks at the window's requests. What it cannot do is
// ERROR_FAILED, and leaves nothing behind.
int flight_recorder_save(struct flight_recorder *recorder, const char *capture_dir,
                         struct run_segment_range segments, const struct slow_window *window,
                         struct error *err);

// The stretch of the latest window goes on in this one, which began with the next interval: that
// folder gets these segments as well, and the requests of both. False: it cannot, since it was
// lengthened once (a server that stays slow has a window of every second interval), was not saved,
// or lacks segments between; this window then is one of its own.
bool flight_recorder_lengthen(struct flight_recorder *recorder, const char *capture_dir,
                              struct run_segment_range segments, const struct slow_window *window);

#endif
