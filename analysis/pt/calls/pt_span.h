// SPDX-License-Identifier: MIT
//
// Spans, which are made from call stacks (pt_calls.h): one interval for each call of a function,
// interrupt, syscall and gap; and the functions that receive them.
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
    PT_SPAN_LOST,      // packets were lost or undecodable: nothing is known
};

enum pt_untraced { PT_UNTRACED_SYSCALL = 1, PT_UNTRACED_INTERRUPT, PT_UNTRACED_OTHER };

struct pt_span {
    uint64_t function;   // key (pt_image.h), the address called where no key is known, 0 unknown
    uint64_t begin;      // TSC; where the stream has no time, instructions executed
    uint64_t end;        //
    uint64_t inner;      // how much of it was spent in spans directly inside it
    uint32_t error;      // of begin and end, the larger one, same unit
    uint32_t task;       // PT_NO_TASK unknown
    int32_t level;       // smaller is further out; comparable within one stream only
    uint8_t kind;        // enum pt_span_kind
    bool cut_begin;      // it began earlier: before the trace, or before its task was switched in
    bool cut_end;        // it goes on after `end`
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
    uint64_t resets;       // stacks that were given up
    uint64_t gaps;         // stretches of lost or undecodable trace
    uint64_t gap_time;     // and the time that these cover
    uint64_t covered_time; // decoded and tracing
    // How precise times are: the number of spans' boundaries by the power of two that exceeds their
    // error.
    uint64_t errors[33];
};

// Receives the spans of a stream and knows its current time.
struct pt_span_writer {
    pt_span_sink *sink; // may be NULL
    void *context;
    uint64_t now;
    uint32_t now_error;
    bool timed;         // the stream has TSC packets
    bool after_syscall; // the previous flow was a loss
    struct pt_call_counts counts;
};

static inline int pt_span_write(struct pt_span_writer *writer, const struct pt_span *span,
                                struct error *err)
{
    writer->counts.spans++;
    return writer->sink ? writer->sink(writer->context, span, err) : 0;
}

#endif
