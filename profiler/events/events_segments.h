// SPDX-License-Identifier: MIT
//
// The segments of a capture that stays: what is recorded of each, as its budget says
// (profiler/events/events_budget.h), and which programs run meanwhile. A segment begins, is
// recorded, rests once the budget is spent, and ends when it is cut; times are ns.
#ifndef PROFILER_EVENTS_EVENTS_SEGMENTS_H
#define PROFILER_EVENTS_EVENTS_SEGMENTS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "profiler/events/event_drain.h"
#include "profiler/events/events_budget.h"
#include "profiler/events/events_programs.h"
#include "profiler/events/payload_frames.h"
#include "profiler/events/program_costs.h"

// Points into the capture's state, and owns what costs has.
struct events_segments {
    bool scheduler; // whether its programs are among them
    struct events_bpf *programs;
    struct event_program_state *states;
    struct event_drain *drain;
    struct payload_frames *frames; // NULL: the payload is not looked at
    struct program_costs costs;
    struct events_budget budget;
    uint64_t begun_ns;              // when the segment began, CLOCK_MONOTONIC
    bool rests;                     // nothing is recorded, since ...
    uint64_t recorded_ns;           // ... then, CLOCK_MONOTONIC
    bool wakes;                     // at the next poll
    uint64_t read_records, read_ns; // of all records, and of this process' time, as it began
    uint64_t charged_ns;            // for reading them, by others
    struct events_segment now;      // that goes on, as far as it is known
};

// Before the programs are loaded; the drain has begun. share and segment_ns as of the budget.
// ERROR_FAILED: no memory.
int events_segments_init(struct events_segments *segments, double share, uint64_t segment_ns,
                         struct event_drain *drain, struct error *err);
void events_segments_free(struct events_segments *segments);

// The programs run: the first segment begins. All that is given stays the caller's.
void events_segments_begin(struct events_segments *segments, struct events_bpf *programs,
                           struct event_program_state states[EVENT_PROGRAMS],
                           struct payload_frames *frames, const cpu_set_t *cores, bool scheduler);

// Has recording rest once the budget is spent, and go on after what was cut is written.
void events_segments_poll(struct events_segments *segments);

// Ends a segment: drains its records and decides about the next one. Writing them comes between
// this and ...
void events_segments_end(struct events_segments *segments);

// ... this: *ended is what was recorded of it, and the next one begins, at once unless recording
// rests.
void events_segments_next(struct events_segments *segments, struct events_segment *ended);

#endif
