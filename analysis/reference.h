// SPDX-License-Identifier: MIT
//
// What is normal: for each operation, the messages whose latency lies between its 40th and 60th
// percentile in the same window, and how long each component takes in them, at the median.
#ifndef ANALYSIS_REFERENCE_H
#define ANALYSIS_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/decompose.h"

struct reference {
    uint32_t operation;
    uint64_t count;       // messages in the band
    double latency_ns;    // their median
    double *component_ns; // median by component; a component beyond the end is 0
    size_t component_count;
};
struct reference_array ARRAY_OF(struct reference);

struct reference_set {
    struct reference pooled;           // over all operations
    struct reference_array operations; // ascending; operations too rare for their own are left out
};

// Builds the references from the messages of a window (indices of whole lifetimes). The caller
// frees with reference_set_free, also on failure. -1: no memory.
int reference_set_build(struct reference_set *set, struct decomposer *decomposer,
                        const uint64_t *candidates, size_t count);
void reference_set_free(struct reference_set *set);

// An operation's own reference, or the pooled one.
const struct reference *reference_of(const struct reference_set *set, uint16_t operation);

static inline double reference_component_ns(const struct reference *reference, uint32_t component)
{
    return component < reference->component_count ? reference->component_ns[component] : 0;
}

#endif
