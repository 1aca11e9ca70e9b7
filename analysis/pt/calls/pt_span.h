// SPDX-License-Identifier: MIT
//
// What call stacks (pt_calls.h) are turned into: one interval for each call of a function,
// interrupt, syscall and gap; and who takes these intervals.
#ifndef ANALYSIS_PT_CALLS_PT_SPAN_H
#define ANALYSIS_PT_CALLS_PT_SPAN_H

#include <stdbool.h>
#include <stdint.h>

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
    uint64_t function;   // key (pt_image.h), the address called where no key is known, 0 unknown
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

// Where the spans of a stream go, and what time it is there.
struct pt_span_writer {
    pt_span_sink *sink; // may be NULL
    void *context;
    uint64_t now;
    uint32_t now_error;
    bool timed;         // the stream has TSC packets
    bool after_syscall; // the flow before was one
    struct pt_call_counts counts;
};

static inline int pt_span_write(struct pt_span_writer *writer, const struct pt_span *span,
                                struct error *err)
{
    writer->counts.spans++;
    return writer->sink ? writer->sink(writer->context, span, err) : 0;
}

#endif
