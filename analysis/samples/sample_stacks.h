// SPDX-License-Identifier: MIT
//
// Call stacks of several recordings, added up by the names in them: those of one side of a
// comparison, or of both beside each other.
#ifndef ANALYSIS_SAMPLES_SAMPLE_STACKS_H
#define ANALYSIS_SAMPLES_SAMPLE_STACKS_H

#include "analysis/samples/sample_profile.h"
#include "base/map.h"
#include "base/name_pool.h"

enum { SAMPLE_SIDES = 2 };

// As a sample_node: a parent's number is smaller than its children's, the first is the root.
struct stack_node {
    uint32_t parent;
    uint32_t name;                // in sample_stacks.names
    uint64_t total[SAMPLE_SIDES]; // samples in it and in all that it called
};

// Zeroed: empty. Free with sample_stacks_free.
struct sample_stacks {
    struct ARRAY_OF(struct stack_node) nodes; // none: nothing was sampled
    struct name_pool *names;
    struct map children; // nodes by parent and name
};

// Adds a recording to one side. -1: no memory.
int sample_stacks_add(struct sample_stacks *stacks, unsigned side,
                      const struct sample_profile *profile);

// Adds the first side of others to one side. -1: no memory.
int sample_stacks_join(struct sample_stacks *stacks, unsigned side,
                       const struct sample_stacks *others);

void sample_stacks_free(struct sample_stacks *stacks);

#endif
