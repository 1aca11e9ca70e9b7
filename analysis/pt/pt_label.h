// SPDX-License-Identifier: MIT
//
// Readable names of spans and tasks.
#ifndef ANALYSIS_PT_PT_LABEL_H
#define ANALYSIS_PT_PT_LABEL_H

#include "analysis/pt/calls/pt_span.h"
#include "analysis/pt/pt_trace.h"

enum { PT_LABEL_BYTES = 512 };

// The name of a function, an address, or why nothing is known. For tasks as pt_label_task. Returns
// the text, which may be in out. Asks trace->symbols: one thread at a time.
const char *pt_label(const struct pt_trace *trace, enum pt_span_kind kind, uint64_t function,
                     bool known, char out[PT_LABEL_BYTES]);

// A thread's name ("" unknown, "idle" for number 0), and its process (the number itself: unknown).
const char *pt_label_task(const struct pt_trace *trace, uint32_t task);
uint32_t pt_label_process(const struct pt_trace *trace, uint32_t task);

// Whether a span's function belongs to the kernel, which the uppermost bit of keys and addresses
// says.
static inline bool pt_label_is_kernel(uint64_t function)
{
    return function >> 63 != 0;
}

#endif
