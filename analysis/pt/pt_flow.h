// SPDX-License-Identifier: MIT
//
// What a walk over a piece of a PT stream leaves behind: not its instructions, only the places
// where control changed hands. Walks run in parallel and each knows only its own piece; the flow
// is what they hand to the call stacks (pt_calls.h), which read the pieces in order.
#ifndef ANALYSIS_PT_PT_FLOW_H
#define ANALYSIS_PT_PT_FLOW_H

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
    uint64_t function;    // key of the function at `to` (pt_symbols.h), 0 unknown
    uint32_t instruction; // how many the walk had executed by then
    uint32_t error_tsc;   // the true time is within this of tsc
    uint8_t kind;         // enum pt_flow_kind
    bool at_start;        // `to` is the first instruction of its function
    bool unmarked;     // no packet was written for it, as for a direct call: it may have happened
                       // after the timing packet that follows the one of tsc
    bool asynchronous; // DISABLE: between two instructions, by an interrupt
};
struct pt_flows ARRAY_OF(struct pt_flow);

// libipt knows the time at timing packets only; several flows share one. These are spread over the
// time to the next packet by the instructions between them. Each may truly have happened anywhere
// between the packet before its own (branches are reported in bunches, after the fact) and the
// next: that is its error. Not proven where the core's clock ratio changes between two branches (CBR
// in mid-run): times there can lie beyond it.
// end_tsc: when the next piece begins, 0 unknown.
void pt_flows_interpolate(struct pt_flows *flows, uint64_t end_tsc);

// Between packets that tell the time, libipt counts cycles at a ratio it keeps in 256ths: it is off
// by at most a 64th of the time since the last of those, which is no more than most_tsc, or
// than the time since begin_tsc. Widens the errors by that.
enum { PT_CYCLE_ERROR_PART = 64 };
void pt_flows_add_cycle_error(struct pt_flows *flows, uint64_t begin_tsc, uint64_t most_tsc);

#endif
