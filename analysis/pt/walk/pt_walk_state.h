// SPDX-License-Identifier: MIT
//
// One walk over a piece of a stream: the state that it keeps between two blocks, how flows come
// from it, and how libipt's events (interrupts, lost packets, tracing switched on and off) change
// it. Used by pt_walk.c only, which adds the blocks.
#ifndef ANALYSIS_PT_WALK_PT_WALK_STATE_H
#define ANALYSIS_PT_WALK_PT_WALK_STATE_H

#include "analysis/pt/walk/pt_flow.h"
#include "analysis/pt/walk/pt_walker.h"

struct pt_walk {
    struct pt_walker *walker;
    const struct pt_stream *stream;
    struct pt_piece *piece;
    struct error *err;
    uint64_t base;       // offset in the stream of the decoder's first byte
    uint64_t end_offset; // where the next piece begins, in the decoder's bytes; UINT64_MAX: there
                         // is none
    uint64_t end_ip;     // the address in that PSB's header
    bool enabled;        // whether tracing is on, as far as the events say
    bool aborted; // a transaction was aborted: the asynchronous branch that follows is no interrupt
    bool failed;  // out of memory
    bool unusual; // cannot be followed: libipt's block decoder must walk the piece
    uint64_t last_ip;
    uint64_t tsc;        // at the last flow
    uint64_t passed_tsc; // time of an event that the decoder has already passed: branches before
                         // and after it have the same time
    uint8_t ratio;       // ratio of the core's clock; 0: not known yet
    uint32_t space;
    size_t next_change;
    struct pt_function function; // the function at the instruction pointer; key 0: unknown
    struct pt_flow pending;      // a transfer whose target follows from the next block or event
    uint64_t stall_offset;       // how far the trace had been read ...
    uint64_t stall_begin;        // ... after that many instructions
    uint32_t lost_mtc, lost_cyc;
};

// Whether the address lies in the function at the instruction pointer.
static inline bool pt_walk_inside(const struct pt_walk *walk, uint64_t ip)
{
    return ip - walk->function.low < walk->function.high - walk->function.low;
}

// Asks libipt for the time of the last timing packet before the one that decided the last branch.
// While an event is handled the decoder has read further, and the event's own time is used.
// decided: that packet also decided where control goes now.
static inline void pt_walk_read_time(struct pt_walk *walk, bool decided)
{
    uint64_t tsc = 0;
    if (pt_walker_time(walk->walker, &tsc, &walk->lost_mtc, &walk->lost_cyc) >= 0 &&
        (decided || tsc != walk->passed_tsc))
        walk->tsc = tsc;
}

static inline struct pt_flow pt_walk_flow(struct pt_walk *walk, enum pt_flow_kind kind,
                                          uint64_t from, uint64_t to)
{
    return (struct pt_flow){.kind = (uint8_t)kind,
                            .tsc = walk->tsc,
                            .from = from,
                            .to = to,
                            .ahead = walk->passed_tsc && walk->tsc == walk->passed_tsc,
                            .instruction = (uint32_t)walk->piece->counts.instructions};
}

void pt_walk_emit(struct pt_walk *walk, const struct pt_flow *flow);

// Completes the pending transfer, if any: it went to `to`; 0: unknown.
void pt_walk_settle(struct pt_walk *walk, uint64_t to);
// Adds a flow for a jump to `ip` that no block ended with. libipt reports no target for a direct
// jump inside a block; direct jumps between functions go to a function's start.
void pt_walk_jump(struct pt_walk *walk, uint64_t ip, bool direct);

// Control is at `ip`: finds out how it got there.
static inline void pt_walk_reach(struct pt_walk *walk, uint64_t ip)
{
    if (walk->pending.kind != PT_FLOW_NONE)
        pt_walk_settle(walk, ip);
    else if (!pt_walk_inside(walk, ip))
        pt_walk_jump(walk, ip, false);
}

// Follows the changes of the address space up to that time; returns the current one.
void pt_walk_follow_changes(struct pt_walk *walk, uint64_t tsc);
void pt_walk_find_change(struct pt_walk *walk, uint64_t tsc);

// Handles the pending events. Returns the decoder's status; sets *ended when the next piece begins
// here.
int pt_walk_events(struct pt_walk *walk, int status, bool *ended);

#endif
