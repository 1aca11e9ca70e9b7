// SPDX-License-Identifier: MIT
//
// One walk over a piece of a stream: the state that lives between two blocks, and how it turns
// into flows; and what libipt's events (interrupts, lost packets, tracing switched on and off) do
// to it. The blocks come from pt_walk.c, its only user.
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
    uint64_t end_offset; // where the next piece begins, for the decoder; UINT64_MAX: to the end
    uint64_t end_ip;     // the address in that PSB's header
    bool enabled;        // tracing, as far as the events say
    bool aborted;        // a transaction: the asynchronous branch that follows is no interrupt
    bool failed;         // out of memory
    bool unusual;        // not to be followed: libipt's block decoder must do it
    uint64_t last_ip;
    uint64_t tsc;        // at the last flow
    uint64_t passed_tsc; // of an event that was read over: branches before and after it have it
    uint8_t ratio;       // of the core's clock; 0: not told yet
    uint32_t space;
    size_t next_change;
    struct pt_function function; // that holds the instruction pointer; key 0: unknown
    struct pt_flow pending;      // a transfer whose target the next block or event will tell
    uint64_t stall_offset;       // where the trace was read up to ...
    uint64_t stall_begin;        // ... after this many instructions
    uint32_t lost_mtc, lost_cyc;
};

// Whether the address lies in the function that holds the instruction pointer.
static inline bool pt_walk_inside(const struct pt_walk *walk, uint64_t ip)
{
    return ip - walk->function.low < walk->function.high - walk->function.low;
}

// Asks for the time of the last timing packet before the trace that decided the last branch. While
// an event is taken the decoder has read on, and the event's own time is right. decided: that
// packet decided where control goes now.
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

// The transfer that is pending, if any, went to `to`; 0 unknown.
void pt_walk_settle(struct pt_walk *walk, uint64_t to);
// A jump that nothing announced took control to `ip`. A direct one inside a block hides its target;
// direct jumps between functions go to their start.
void pt_walk_jump(struct pt_walk *walk, uint64_t ip, bool direct);

// Control is at `ip`: settles how it came there.
static inline void pt_walk_reach(struct pt_walk *walk, uint64_t ip)
{
    if (walk->pending.kind != PT_FLOW_NONE)
        pt_walk_settle(walk, ip);
    else if (!pt_walk_inside(walk, ip))
        pt_walk_jump(walk, ip, false);
}

// Follows the changes of the address space up to that time; finds the one that holds at it.
void pt_walk_follow_changes(struct pt_walk *walk, uint64_t tsc);
void pt_walk_find_change(struct pt_walk *walk, uint64_t tsc);

// Takes the events that are pending. Returns the decoder's status; *ended when the next piece
// begins here.
int pt_walk_events(struct pt_walk *walk, int status, bool *ended);

#endif
