// SPDX-License-Identifier: MIT
//
// When a capture that stays (taillight watch) does without part of its programs. Most of what a
// program costs is that it runs at all, and looks at the clock: for a server whose client is on the
// same machine some 18 runs a request, and 6 without those of EVENT_SPARED (bpf/events.tbl.h).
//
// These tell when a request was handed over, when its reply left, and what softirqs took. They are
// left out of a segment while there are more messages than a core can pay for; every tenth segment
// has them all the same.
#ifndef PROFILER_EVENTS_SPARING_H
#define PROFILER_EVENTS_SPARING_H

#include <stdbool.h>
#include <stdint.h>

enum { SPARING_IN_A_ROW = 9 }; // segments

// A zeroed one spares nothing.
struct events_sparing {
    uint64_t above; // requests a second on one core, and then down to two thirds; 0: never
    bool on;        // in the segment that has begun
    bool many;      // messages, in the one before
    unsigned in_a_row;
};

// A segment has ended: the core with the most messages had so many records of them (SEGMENT,
// RECEIVED, SENT; two for each request) in that time. Decides about the next one.
void events_sparing_decide(struct events_sparing *sparing, uint64_t records, uint64_t ns);

#endif
