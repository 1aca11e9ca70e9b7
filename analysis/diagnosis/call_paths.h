// SPDX-License-Identifier: MIT
//
// Which functions a message's time went to, by path of calls: a node of the tree is a function
// called from another node, its root a component (components.h). For the message at hand each node
// holds how long control was in it or in what it called, and how often it was called.
#ifndef ANALYSIS_DIAGNOSIS_CALL_PATHS_H
#define ANALYSIS_DIAGNOSIS_CALL_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/span.h"
#include "base/array.h"
#include "base/map.h"

struct path_node {
    uint32_t parent; // node; NO_PATH: the outermost function within its component
    uint32_t component;
    uint32_t name;  // of the function, index into the host's names
    uint32_t calls; // of the message at hand
    double ns;
    bool kernel; // the kernel's code
};
struct path_array ARRAY_OF(struct path_node);
enum { NO_PATH = 0xffffffff };

struct path_share {
    uint32_t path;
    uint32_t calls;
    double ns;
};
struct path_share_array ARRAY_OF(struct path_share);

struct call_paths {
    struct path_array nodes;      // a parent before what it calls
    struct map numbers;           // of nodes, by parent, component and name
    struct index_array touched;   // nodes of the message at hand
    uint32_t last[MAX_OPEN];      // path of the previous piece: its nodes
    uint32_t last_name[MAX_OPEN]; // and the functions of these nodes
    uint32_t last_component;
    unsigned last_count;
};

// A zeroed struct has no paths.
void call_paths_free(struct call_paths *paths);

// The message spent [begin_ns, end_ns), or `share` of it, in the innermost of `count` functions,
// each called by the one before. A function counts as called where its span begins with the piece;
// one that begins together with its context was only continued and does not count. -1: no memory.
int call_paths_add(struct call_paths *paths, uint32_t component,
                   const struct span *const *functions, unsigned count, int64_t begin_ns,
                   int64_t end_ns, double share, int64_t context_begin_ns);

// Appends what was added for the message at hand, by ascending path, and clears it. out may be
// NULL.
int call_paths_take(struct call_paths *paths, struct path_share_array *out);

#endif
