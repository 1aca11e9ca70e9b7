// SPDX-License-Identifier: MIT
//
// The logs of a capture that was written in segments (experiments/capture), put together again: as
// if it had been written at once, up to where it ends.
#ifndef ANALYSIS_RUN_SEGMENTS_H
#define ANALYSIS_RUN_SEGMENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log_file.h"

struct run_segments {
    const char *side; // the folder of the run that they are in: "server" or "client"
    bool any;         // there are segments
    bool ended;       // the capture ended by itself: what came after the last one is there, too
    unsigned first, count;
    unsigned left_out;         // segments before these for which memory does not suffice
    int64_t from_ns, until_ns; // host time: what is not between is not in them; 0: no limit
    char why[500];             // it ended; empty: it was killed, or goes on
    void *memory[2];           // of the logs that were put together
};

// Takes "segments" of this side's capture.json (which may be NULL), and leaves the oldest out where
// all together have more bytes than this. side is a literal.
int run_segments_read(struct run_segments *segments, const json_t *capture, const char *run_dir,
                      const char *side, uint64_t most_bytes, struct error *err);

// Which of them to look at, by their numbers. first 0: all.
struct run_segment_range {
    unsigned first, last;
};

// Leaves all others out, and what came after the last segment. False: one of them is not there.
bool run_segments_keep(struct run_segments *segments, struct run_segment_range range);

// How many bytes of logs this machine can analyse: each becomes several in memory, and takes its
// time.
uint64_t run_segments_affordable(void);

// Opens all of the side's events*.tlog or calls*.tlog as one, the events of each core together
// in order of time, the calls in order of their entry. The reader must be closed before the
// segments are freed.
int run_segments_open_events(struct run_segments *segments, const char *run_dir,
                             struct log_reader *out, struct error *err);
int run_segments_open_calls(struct run_segments *segments, const char *run_dir,
                            struct log_reader *out, struct error *err);

void run_segments_free(struct run_segments *segments);

#endif
