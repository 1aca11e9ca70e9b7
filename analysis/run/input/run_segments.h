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

#include "base/array.h"
#include "base/error.h"
#include "base/log_file.h"

struct run_segments {
    const char *side; // the folder of the run that they are in: "server" or "client"
    bool any;         // there are segments
    bool ended;       // the capture ended by itself: what came after the last one is there, too
    unsigned first, count;
    unsigned left_out;      // others, for which memory does not suffice
    unsigned messages_from; // as in run_segment_range
    uint64_t messages_lead_ns;
    uint64_t events_from, events_until;
    bool chosen;                   // which they are was chosen: from_ns and until_ns are theirs
    struct ARRAY_OF(int64_t) ends; // of all segments: until when all is in each and those before;
                                   // host time; empty: the capture does not say
    struct ARRAY_OF(
        unsigned) rests; // numbers of those after which nothing was recorded for a while
    uint64_t most_bytes; // of logs that are looked at
    uint64_t *bytes;     // of the logs of each, from number `named` on, and of the rest
    unsigned named;
    int64_t from_ns, until_ns; // host time: what is not between is not in them; 0: no limit
    char why[500];             // it ended; empty: it was killed, or goes on
    void *memory[3];           // of the logs that were put together
};

// Takes "segments" of this side's capture.json (which may be NULL), and leaves the oldest out where
// all together have more bytes than this. side is a literal.
int run_segments_read(struct run_segments *segments, const json_t *capture, const char *run_dir,
                      const char *side, uint64_t most_bytes, struct error *err);

// Which of them to look at, by their numbers; first 0: all, or so many that their logs have no more
// bytes than this (0: what this machine can analyse).
struct run_segment_range {
    unsigned first, last;
    uint64_t most_bytes;
    // Of the segments before that one only what threads and cores did, and what concerns messages
    // since so long before it began: its requests arrived since. 0: all.
    unsigned messages_from;
    uint64_t messages_lead_ns;
    // Of all of them only what was recorded from one time until another (CLOCK_MONOTONIC; 0, 0: no
    // limit), and of before who the threads and disks are and who had the cores.
    uint64_t events_from, events_until;
};

// Where only a part of a capture can be looked at: not its last, but that of no more bytes in which
// most of these moments lie (host time, ascending), the first of those with as many. Where the
// capture does not say when its segments ended, it stays the last. Returns how many lie in it.
size_t run_segments_choose(struct run_segments *segments, const int64_t *moments, size_t count);

// How many event logs the capture has, with those that are left out, and one of them, from 0 on; 0:
// it does not say when its segments ended.
unsigned run_segments_all(const struct run_segments *segments);
int run_segments_open_one(const struct run_segments *segments, const char *run_dir, unsigned n,
                          struct log_reader *out, struct error *err);

// Leaves all others out, and what came after the last segment. False: one of them is not there.
bool run_segments_keep(struct run_segments *segments, struct run_segment_range range);

// How many bytes of logs this machine can analyse: each becomes several in memory, and takes its
// time.
uint64_t run_segments_affordable(void);

// Opens all of the side's events*.tlog or calls*.tlog as one, the events of each core together
// in order of time, the calls in order of their entry. The reader must be closed before the
// segments are freed. Events of segments between which nothing was recorded (capture --budget) are
// refused: what happened meanwhile would be taken for what was recorded before.
int run_segments_open_events(struct run_segments *segments, const char *run_dir,
                             struct log_reader *out, struct error *err);
int run_segments_open_calls(struct run_segments *segments, const char *run_dir,
                            struct log_reader *out, struct error *err);

// The same of the side's connections: sockets.tlog has those that were there when it was written
// last, sockets-<number>.tlog those that ended before and made room in that segment. By id. Later
// segments than those that are looked at have some of theirs.
int run_segments_open_sockets(struct run_segments *segments, const char *run_dir,
                              struct log_reader *out, struct error *err);

void run_segments_free(struct run_segments *segments);

#endif
