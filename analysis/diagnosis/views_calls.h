// SPDX-License-Identifier: MIT
//
// The functions that the messages' cores were in, as a tree of who called whom, for the slice and
// for its reference (views.h). Only of times in which calls are known (core_timeline_traced):
// captures of functions, and what was decoded of a processor trace.
#ifndef ANALYSIS_DIAGNOSIS_VIEWS_CALLS_H
#define ANALYSIS_DIAGNOSIS_VIEWS_CALLS_H

#include "analysis/diagnosis/views.h"
#include "analysis/timeline/span.h"
#include "base/map.h"

// Zeroed it is empty.
struct call_tree {
    struct call_node_array nodes;
    struct map by_call; // from parent, kind and name
};

void call_tree_free(struct call_tree *tree);

// Adds what a core did in [begin_ns, end_ns) for a message of a side (VIEW_SLICE, VIEW_REFERENCE);
// nothing where its calls are not known all the time. -1: no memory.
int call_tree_add(struct call_tree *tree, const struct core_timeline *core, int64_t begin_ns,
                  int64_t end_ns, int side);

#endif
