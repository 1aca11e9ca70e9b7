// SPDX-License-Identifier: MIT
//
// Call stacks from the flow of control, and from them spans (pt_span.h). Reads one stream's pieces
// in order and knows nothing of libipt. Calls made before the stream began become known when they
// return: a return into unknown code reveals a caller that was on the stack since the beginning.
//
// Every stack belongs to a task. When another task is switched in, the open calls of the one
// before are cut there (their spans end, and begin again when the task comes back), so that a
// core's spans always nest.
#ifndef ANALYSIS_PT_CALLS_PT_CALLS_H
#define ANALYSIS_PT_CALLS_PT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/pt/calls/pt_span.h"
#include "analysis/pt/walk/pt_flow.h"
#include "base/array.h"
#include "base/error.h"

// From `tsc` until the next entry the CPU ran this task.
struct __attribute__((packed, aligned(4))) pt_switch { // 12 bytes: there may be millions
    uint64_t tsc;
    uint32_t task;
};
struct pt_switches ARRAY_OF(struct pt_switch);

struct pt_calls; // of one stream

// switches may be NULL, must ascend and outlive it. timed: the stream has TSC packets.
struct pt_calls *pt_calls_alloc(const struct pt_switches *switches, bool timed, pt_span_sink *sink,
                                void *context, struct error *err);
void pt_calls_free(struct pt_calls *calls);

// Takes the next piece. `contiguous`: the piece before it handed over to it.
int pt_calls_take(struct pt_calls *calls, const struct pt_piece *piece, bool contiguous,
                  struct error *err);

// Ends all open spans.
int pt_calls_finish(struct pt_calls *calls, struct error *err);

const struct pt_call_counts *pt_calls_counts(const struct pt_calls *calls);

// The granularity of the trace: nine of ten boundaries of spans are known at least this well (in
// units of struct pt_span's times). 0: nothing was timed.
uint64_t pt_calls_granularity(const struct pt_call_counts *counts);

#endif
