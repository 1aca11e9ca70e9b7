// SPDX-License-Identifier: MIT
//
// The capture of a watch: a process of its own, `taillight capture` in segments, since it needs the
// rights that who reads its logs does without. It says on its stdout what it has recorded, and is
// told on its stdin what reading that took.
#ifndef EXPERIMENTS_WATCH_WATCH_CAPTURE_H
#define EXPERIMENTS_WATCH_WATCH_CAPTURE_H

#include <stdint.h>

#include "base/error.h"
#include "base/process.h"

struct watch_segment {
    unsigned number;           // from 1; of several the last one's
    unsigned count;            // of how many it is made
    int64_t from_ns, until_ns; // host time, since when and until when all is in it; from 0: since
                               // the one before
    uint64_t bytes;            // of its events
    double recorded;           // what part that is of its time
    double taken;              // of a core, by recording, meanwhile
};

// Makes one of two between which recording went on; since_ns is when the first began.
void watch_segment_join(struct watch_segment *into, int64_t since_ns,
                        const struct watch_segment *later);

struct watch_capture {
    struct process process; // of pid 0: there is none
    const char *log;        // what it says to people
    int64_t since_ns;       // host time, when it began to record
    uint64_t ticks;         // of processor time, that it had taken when asked last
    int64_t charged_ns;     // of this process' processor time, that it was told
};

// An option's name and its value; NULL: not given.
struct watch_capture_option {
    const char *name, *value;
};

enum { WATCH_CAPTURE_OPTIONS = 14 }; // at most

// Starts it and waits until it records. log: a file's name, which has to stay. What it finds wrong
// with its options is returned as an error of the input.
int watch_capture_start(struct watch_capture *capture, const struct watch_capture_option *options,
                        size_t count, const char *log, struct error *err);

// Waits for one line of what it says. Returns 1 when there was one, and then *ended is the segment
// that has ended, if it was about that; 0 on timeout; negative when it says that it has ended.
int watch_capture_listen(struct watch_capture *capture, int wait_ms, struct watch_segment *ended,
                         struct error *err);

// Returns 0 while it goes on; negative, with the last words of its log, when it has ended.
int watch_capture_check(struct watch_capture *capture, struct error *err);

// The processor time, in seconds, that it took since this was asked last.
double watch_capture_seconds(struct watch_capture *capture);

// What this process has taken since the last time counts for the capture's budget, too.
void watch_capture_charge(struct watch_capture *capture);

// Ends it. Harmless where there is none.
void watch_capture_stop(struct watch_capture *capture);

#endif
