// SPDX-License-Identifier: MIT
//
// Folded stacks, as flame graph tools read them: "task;outer;inner <time>" a line, where time is
// what the innermost function spent itself, in ns (or in what the trace counts in). Memory follows
// the number of different stacks.
#ifndef ANALYSIS_EXPORT_PT_FOLDED_H
#define ANALYSIS_EXPORT_PT_FOLDED_H

#include <stdio.h>

#include "analysis/pt/calls/pt_span.h"
#include "analysis/pt/pt_trace.h"

struct pt_folded_node {
    struct pt_map_key key; // its parent is a node's number, 0: outermost
    uint64_t self;         // ticks
};

// The stacks of one stream, or of several. Zeroed: none. Nodes have numbers from 1 on, a parent's
// is smaller than its children's.
struct pt_folded {
    struct pt_map map;
    struct pt_folded_nodes ARRAY_OF(struct pt_folded_node) nodes;
    struct pt_folded_open ARRAY_OF(uint32_t) open;
};

// Takes spans, as a pt_nested_sink does.
int pt_folded_take(struct pt_folded *folded, const struct pt_nested_span *spans, size_t count,
                   struct error *err);
// Adds another's stacks to these.
int pt_folded_add(struct pt_folded *folded, const struct pt_folded *other, struct error *err);
// Writes the lines. Semicolons and line ends in names become commas and spaces.
int pt_folded_write(const struct pt_folded *folded, const struct pt_trace *trace, const char *path,
                    struct error *err);
void pt_folded_free(struct pt_folded *folded);

#endif
