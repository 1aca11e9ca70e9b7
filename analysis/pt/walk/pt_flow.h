// SPDX-License-Identifier: MIT
//
// The result of a walk over a piece of a PT stream: not the instructions, only the places where
// control moved between functions. Pieces are walked in parallel; their flows go to the call stacks
// (pt_calls.h), which read them in order.
#ifndef ANALYSIS_PT_WALK_PT_FLOW_H
#define ANALYSIS_PT_WALK_PT_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/room.h"

enum pt_flow_kind {
    PT_FLOW_NONE,
    PT_FLOW_BEGIN,      // the walk knows where the processor is, but not how it got there
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
    uint64_t tsc; // 0 without timing packets
    // From here to `ahead` it lies as in a struct pt_passage_flow (pt_paths.h):
    uint64_t from;     // the instruction that moved control, or the first one that was not executed
    uint64_t to;       // where control went
    uint64_t function; // key of the function at `to` (pt_image.h), 0 unknown
    uint32_t instruction; // how many the walk had executed by then
    uint8_t kind;         // enum pt_flow_kind
    bool at_start;        // `to` is the first instruction of its function
    bool unmarked;      // no packet was written for it, as for a direct call: it may have happened
                        // after the timing packet that follows the one of tsc
    bool ahead;         // it happened before the packet of tsc, and so may the flows after it
    uint32_t error_tsc; // the true time is within this of tsc
    bool asynchronous;  // DISABLE: between two instructions, by an interrupt
};
struct pt_flows ARRAY_OF(struct pt_flow);

// The core's clock changed its ratio to the bus's (a CBR packet). No packet says how many of the
// cycles in the next CYC packet had which ratio.
struct pt_ratio_change {
    uint64_t tsc;      // libipt's time of the last timed packet before it
    size_t flow;       // the next flow that the walk will find
    uint8_t low, high; // the ratios before and after, the lower one first
    // pt_flows_interpolate fills in:
    uint64_t from, until; // times after `from`, up to `until` ...
    uint64_t error;       // ... may be wrong by this much, because of this change and earlier ones
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

// The result of the walk over one piece.
struct pt_piece {
    size_t first_sync, end_sync; // of the stream's packets: [first, end)
    struct pt_walk_counts counts;
    struct pt_walk_errors errors;
    struct pt_flows flows;
    struct room *room;                     // where the flows lie; it must outlive the piece
    struct pt_ratio_changes ratio_changes; // the flows' times already account for them
    uint8_t lowest_ratio;                  // ratio of the core's clock; 0: unknown
    bool handed_over; // it ended where the next piece begins, and nothing between was lost
};
void pt_piece_reset(struct pt_piece *piece); // empty; the arrays stay for reuse
void pt_piece_free(struct pt_piece *piece);

// To end at a PSB a walk also reads what follows its header, and an error there is found again by
// the walk that begins at that PSB. Drops it there, with the loss that it was. *told: where the
// stream's last error is; in the end, where it is with this piece; PT_NO_ERROR: it has none.
#define PT_NO_ERROR UINT64_MAX
void pt_piece_drop_told(struct pt_piece *piece, uint64_t *told);

// How the times in a piece were measured.
struct pt_timing {
    uint64_t begin_tsc; // when the piece begins
    uint64_t end_tsc;   // when the next one begins; 0: unknown
    bool none;          // no packet carries it: all flows' times and errors are 0
    bool cycles;        // CYC packets count cycles between the packets that carry the time
    bool guessed;       // nothing says how long a cycle is: an average over all that lies between
                        // two PSBs is taken for it, also over times when the core slept
    uint32_t cycle_tsc; // upper bound of the duration of a cycle
    uint64_t period;    // between packets that carry the time (MTC); UINT64_MAX: only PSBs carry it
};

// libipt knows the time at timing packets only, so several flows share one time. When a packet
// shows that earlier times were too late, those are set back to the packet's time. Flows with the
// same time are then spread over the interval to the next packet, by the instructions between them.
// A flow may have happened at any time between the packet before its own (branches are reported in
// groups, afterwards) and the next one: that interval, and the errors of these two packets' times,
// is the flow's error. libipt converts cycles with a ratio that it stores in 256ths and that only
// approximates the processor's, so its time is off by at most a 64th of the time since the last
// packet with the full time. Around a change of the ratio, cycles may have had either one.
enum { PT_CYCLE_ERROR_PART = 64 };
void pt_flows_interpolate(struct pt_flows *flows, const struct pt_timing *timing,
                          struct pt_ratio_changes *changes);

#endif
