// SPDX-License-Identifier: MIT
//
// Call stacks (pt_calls.h) deliver spans when they end, inner ones first. Exports want them in the
// order in which they begin, outer ones first. A task's open spans are cut when another task is
// switched in, so the spans from one switch to the next can be put in order at the second: memory
// follows the longest time between two switches, not the length of the trace. Takes linear time.
#ifndef ANALYSIS_PT_CALLS_PT_ORDER_H
#define ANALYSIS_PT_CALLS_PT_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/pt/calls/pt_span.h"
#include "base/array.h"
#include "base/error.h"

struct pt_nested_span {
    struct pt_span span;
    uint32_t depth; // 0: outermost, which is a task where tasks are known
};

// Some spans of one stream: an enclosing span before those inside it, else by begin. No span that
// is delivered later begins before the last of these ends.
typedef int pt_nested_sink(void *context, const struct pt_nested_span *spans, size_t count,
                           struct error *err);

struct pt_order {
    pt_nested_sink *sink;
    void *context;
    struct pt_spans ARRAY_OF(struct pt_span) spans; // in the order in which they ended
    struct pt_links ARRAY_OF(struct pt_link) links; // same indices as spans
    struct pt_nested_spans ARRAY_OF(struct pt_nested_span) nested;
};

// A pt_span_sink whose context is a struct pt_order: zeroed, but for its sink and context.
int pt_order_take(void *order, const struct pt_span *span, struct error *err);

// Delivers the remaining spans.
int pt_order_finish(struct pt_order *order, struct error *err);
void pt_order_free(struct pt_order *order);

#endif
