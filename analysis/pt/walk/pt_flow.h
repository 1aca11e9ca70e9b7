// SPDX-License-Identifier: MIT
//
// What a walk over a piece of a PT stream leaves behind: not its instructions, only the places
// where control changed hands. Walks run in parallel and each knows only its own piece; the flow
// is what they hand to the call stacks (pt_calls.h), which read the pieces in order.
#ifndef ANALYSIS_PT_WALK_PT_FLOW_H
#define ANALYSIS_PT_WALK_PT_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

enum pt_flow_kind {
    PT_FLOW_NONE,
    PT_FLOW_BEGIN,      // the walk knows where the processor is, and not how it came there
    PT_FLOW_CALL,       // near call
    PT_FLOW_RETURN,     // near return
    PT_FLOW_JUMP,       // a jump out of a function: tail call, longjmp
    PT_FLOW_FAR_CALL,   // syscall, software interrupt; `to` 0: what follows is not traced
    PT_FLOW_FAR_RETURN, // sysret, iret
    PT_FLOW_INTERRUPT,  // interrupt, exception: between two instructions
    PT_FLOW_ENABLE,     // tracing goes on at `to`
    PT_FLOW_DISABLE,    // tracing stops: left the traced code, or switched off
    PT_FLOW_PAGING,     // `to` is the new CR3
    PT_FLOW_OVERFLOW,   // the processor lost packets; it is at `to` now, 0 unknown
    PT_FLOW_LOST,       // the decoder failed here: nothing is known until the next BEGIN
};

struct pt_flow {
    uint64_t tsc;         // 0 without timing packets
    uint64_t from;        // the instruction that changed control, or was not executed any more
    uint64_t to;          // where control went
    uint64_t function;    // key of the function at `to` (pt_image.h), 0 unknown
    uint32_t instruction; // how many the walk had executed by then
    uint32_t error_tsc;   // the true time is within this of tsc
    uint8_t kind;         // enum pt_flow_kind
    bool at_start;        // `to` is the first instruction of its function
    bool unmarked;     // no packet was written for it, as for a direct call: it may have happened
                       // after the timing packet that follows the one of tsc
    bool ahead;        // it happened before the packet of tsc; so may have what follows it
    bool asynchronous; // DISABLE: between two instructions, by an interrupt
};
struct pt_flows ARRAY_OF(struct pt_flow);

// The core's clock changed its ratio to the bus's (a CBR packet). No packet says how many of the
// cycles in the CYC packet behind it were at which ratio.
struct pt_ratio_change {
    uint64_t tsc;      // of the last packet before it that has a time, as libipt has it
    size_t flow;       // the next flow that the walk will find
    uint8_t low, high; // the ratios before and after, the lower one first
    // pt_flows_interpolate fills in:
    uint64_t from, until; // times behind `from`, up to `until` ...
    uint64_t error; // ... may be wrong by this much because of this change and those before it
};
struct pt_ratio_changes ARRAY_OF(struct pt_ratio_change);

struct pt_walk_error {
    uint64_t offset;
    uint64_t ip; // where the decoder was, 0 unknown
    const char *what;
};
struct pt_walk_errors ARRAY_OF(struct pt_walk_error);

struct pt_walk_counts {
    uint64_t instructions, blocks, calls, returns, interrupts, syscalls, overflows, walked_bytes;
    uint64_t followed_bytes;     // of walked_bytes: the fast way (pt_follow.h) was taken
    uint64_t lost_mtc, lost_cyc; // timing packets that libipt could not use
};

void pt_walk_counts_add(struct pt_walk_counts *to, const struct pt_walk_counts *from);

// What the walk over one piece found.
struct pt_piece {
    size_t first_sync, end_sync; // of the stream's packets: [first, end)
    struct pt_walk_counts counts;
    struct pt_walk_errors errors;
    struct pt_flows flows;
    struct pt_ratio_changes ratio_changes; // how they touch the flows' times is in these already
    uint8_t lowest_ratio;                  // of the core's clock; 0: not told
    bool handed_over; // it ended where the next piece begins, with nothing lost between
};
void pt_piece_free(struct pt_piece *piece);

// Where a piece's times come from.
struct pt_timing {
    uint64_t begin_tsc; // when it begins
    uint64_t end_tsc;   // when the next one does, 0 unknown
    bool cycles;        // cycles are counted (CYC) between the packets that tell the time
    uint32_t cycle_tsc; // how long one is, at the most, rounded up
    uint64_t period;    // of those that tell the time (MTC); UINT64_MAX: only the PSBs do
};

// libipt knows the time at timing packets only; several flows share one. Where one of these shows
// that the times before it were too late, they go back to it. Flows that share a time are spread
// over that to the next packet by the instructions between them. Each may truly have happened
// anywhere between the packet before its own (branches are reported in bunches, after the fact) and
// the next: that is its error, together with what is not known of the times of these two.
// libipt counts cycles at a ratio that it keeps in 256ths and that the processor's is near, and so
// is off by at most a 64th of the time since the last packet that tells it; and cycles around a
// change of the ratio may have been at either one.
enum { PT_CYCLE_ERROR_PART = 64 };
void pt_flows_interpolate(struct pt_flows *flows, const struct pt_timing *timing,
                          struct pt_ratio_changes *changes);

#endif
