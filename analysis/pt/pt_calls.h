// SPDX-License-Identifier: MIT
//
// Call stacks from the flow of control, and from them spans: one interval for each call of a
// function, interrupt, syscall and gap. Reads one stream's pieces in order and knows nothing of
// libipt. What happened before the stream began is found out as it returns: a return into unknown
// code shows a caller that was there all along.
//
// Every stack belongs to a task. When another task is switched in, the open calls of the one
// before are cut there (their spans end, and begin again when the task comes back), so that a
// core's spans always nest.
#ifndef ANALYSIS_PT_PT_CALLS_H
#define ANALYSIS_PT_PT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/pt/pt_blocks.h"
#include "analysis/pt/pt_flow.h"
#include "base/array.h"
#include "base/error.h"

enum pt_span_kind {
    PT_SPAN_FUNCTION,
    PT_SPAN_SYSCALL,   // the kernel's entry and all it does, where the kernel is traced
    PT_SPAN_INTERRUPT, // the handler of an interrupt or exception and all it does
    PT_SPAN_UNTRACED,  // tracing was off: `function` is an enum pt_untraced
    PT_SPAN_TASK,      // `task` ran
    PT_SPAN_LOST,      // packets lost or undecodable: nobody knows
};

enum pt_untraced { PT_UNTRACED_SYSCALL = 1, PT_UNTRACED_INTERRUPT, PT_UNTRACED_OTHER };

struct pt_span {
    uint64_t function;   // key (pt_symbols.h), the address called where no key is known, 0 unknown
    uint64_t begin;      // TSC; where the stream has no time, instructions executed
    uint64_t end;        //
    uint64_t inner;      // how much of it was spent in spans directly inside it
    uint32_t error;      // of begin and end, the larger one, same unit
    uint32_t task;       // PT_NO_TASK unknown
    int32_t level;       // the smaller the further out; comparable within one stream only
    uint8_t kind;        // enum pt_span_kind
    bool cut_begin;      // it began earlier: before the trace, or before its task was switched in
    bool cut_end;        // it goes on
    bool function_known; // function is a key and not an address
};
enum { PT_NO_TASK = 0xffffffff };

// Called when a span ends; spans inside it were reported before.
typedef int pt_span_sink(void *context, const struct pt_span *span, struct error *err);

// From `tsc` on the CPU ran this task.
struct __attribute__((packed, aligned(4))) pt_switch { // 12 bytes: there may be millions
    uint64_t tsc;
    uint32_t task;
};
struct pt_switches ARRAY_OF(struct pt_switch);

struct pt_call_counts {
    uint64_t spans;
    uint64_t unwound;      // calls that ended because an outer one did: longjmp, exceptions
    uint64_t tail_calls;   // calls by jump
    uint64_t unmatched;    // returns to where no call on the stack came from
    uint64_t resets;       // stacks given up
    uint64_t gaps;         // losses
    uint64_t gap_time;     // and how much time they cover
    uint64_t covered_time; // decoded and tracing
    // How precise times are: boundaries of spans by the power of two their error is below.
    uint64_t errors[33];
};

struct pt_calls; // of one stream

// switches may be NULL, must ascend and outlive it. timed: the stream has TSC packets.
struct pt_calls *pt_calls_alloc(const struct pt_switches *switches, bool timed, pt_span_sink *sink,
                                void *context, struct error *err);
void pt_calls_free(struct pt_calls *calls);

// Takes the next piece. `contiguous`: the piece before it handed over to it.
int pt_calls_take(struct pt_calls *calls, const struct pt_piece *piece, bool contiguous,
                  struct error *err);

// Ends what is open.
int pt_calls_finish(struct pt_calls *calls, struct error *err);

const struct pt_call_counts *pt_calls_counts(const struct pt_calls *calls);

// The granularity of the trace: nine of ten boundaries of spans are known at least this well (in
// units of struct pt_span's times). 0: nothing was timed.
uint64_t pt_calls_granularity(const struct pt_call_counts *counts);

#endif
