// SPDX-License-Identifier: MIT
//
// One task's call stack, and what each flow of control does to it: which calls begin and which
// end. Knows nothing of tasks, losses and switches; those are pt_calls.c's, its only user.
#ifndef ANALYSIS_PT_CALLS_PT_STACK_H
#define ANALYSIS_PT_CALLS_PT_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/pt/calls/pt_span.h"
#include "analysis/pt/walk/pt_flow.h"
#include "base/array.h"
#include "base/error.h"

enum pt_frame_kind {
    PT_FRAME_CALL,
    PT_FRAME_SYSCALL,
    PT_FRAME_INTERRUPT,
    PT_FRAME_UNTRACED,
    PT_FRAME_ROOT,     // at the bottom: what was running when the trace began
    PT_FRAME_FLOATING, // a return came here from a call that is not on the stack
};

struct pt_frame {
    uint64_t function;
    uint64_t begin;
    uint64_t inner; // time in frames above it that ended since
    uint64_t from;  // the call, or the instruction that was interrupted; 0 unknown
    uint32_t error; // of begin
    uint8_t kind;   // enum pt_frame_kind
    bool known;     // function is a key
    bool cut;       // it began before `begin`
    bool exact;     // control comes back to `from` itself, not to the instruction after it
    bool off_call;  // UNTRACED: by a syscall
};
struct pt_frames ARRAY_OF(struct pt_frame);

struct pt_stack {
    uint32_t task;
    uint32_t impatience; // returns into the unknown in a row
    uint64_t since;      // since when it is known
    uint32_t since_error;
    int32_t outermost; // level of the bottom frame; those above it have the next ones
    struct pt_frames frames;
};

static inline uint64_t pt_span_time(const struct pt_span_writer *writer, const struct pt_flow *flow)
{
    return writer->timed ? flow->tsc : writer->instructions + flow->instruction;
}

// Applies a flow at the current time. contiguous: nothing was lost before it.
int pt_stack_apply(struct pt_span_writer *writer, struct pt_stack *stack,
                   const struct pt_flow *flow, bool contiguous, struct error *err);

// Applies flows while they are calls, returns to where they were called from, in the order of their
// times, and before `until`. *next is then the first one that is not; this one may be such too.
int pt_stack_apply_usual(struct pt_span_writer *writer, struct pt_stack *stack,
                         const struct pt_flow **next, const struct pt_flow *end, uint64_t until,
                         struct error *err);

// The task, whose stack is empty, has run since it was switched in, in a function that is not known
// yet.
int pt_stack_begin_unknown(struct pt_span_writer *writer, struct pt_stack *stack,
                           struct error *err);

// Another task is switched in: the spans of all frames are cut here; the frames stay.
int pt_stack_suspend(struct pt_span_writer *writer, struct pt_stack *stack, struct error *err);
// The task is back: the frames' spans begin again.
void pt_stack_resume(const struct pt_span_writer *writer, struct pt_stack *stack);

// Cuts all spans here and forgets the frames.
int pt_stack_cut(struct pt_span_writer *writer, struct pt_stack *stack, struct error *err);

#endif
