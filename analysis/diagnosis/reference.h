// SPDX-License-Identifier: MIT
//
// What is normal: for each operation (of each application), the messages whose latency lies between
// its 40th and 60th percentile in the same window, and how long each component and function takes
// in them, at the median; and how far a message may be from that without being unusual: the median
// absolute deviation, which single outliers do not move, over messages of any latency (those of the
// band are too much alike).
#ifndef ANALYSIS_DIAGNOSIS_REFERENCE_H
#define ANALYSIS_DIAGNOSIS_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/decomposition/decompose.h"

struct normal {
    double ns;         // median
    double scatter_ns; // 1.4826 median absolute deviations: the standard deviation of a normal
                       // distribution
    double mean_ns;    // these add up to the mean latency of the band; of components only
    double fast_ns;    // the 5th percentile over messages of any latency; of components only
    double met;        // the share of the band's messages that have any of it; of components only
};

struct reference {
    uint32_t operation;        // and application
    uint64_t count;            // messages in the band
    uint64_t taken;            // of these, those that were decomposed
    double latency_ns;         // their median
    struct normal *components; // by component; those beyond the end have 0
    size_t component_count;
    struct normal *paths; // by function path, the same
    double *path_calls;   // median
    size_t path_count;
};
struct reference_array ARRAY_OF(struct reference);

struct reference_set {
    struct reference pooled; // over all operations
    struct reference_array
        operations; // ascending; operations too rare for one of their own are left out
};

// Builds the references from the messages of a window (indices of whole lifetimes). The caller
// frees with reference_set_free, also on failure. -1: no memory.
int reference_set_build(struct reference_set *set, struct decomposer *decomposer,
                        const uint64_t *candidates, size_t count);
void reference_set_free(struct reference_set *set);

// For traces whose functions are expensive to decode: selects, from the messages that
// reference_set_build decomposes, those whose functions are enough for a reference. For each
// operation, and for all of them together, REFERENCE_SAMPLE of the band and as many of any latency;
// a message may be selected more than once. -1: no memory.
enum { REFERENCE_SAMPLE = 250 };
typedef void reference_visitor(uint64_t lifetime, void *context);
int reference_sample(const struct lifetime *lifetimes, const uint64_t *candidates, size_t count,
                     reference_visitor *each, void *context);

// The reference of a message's application and operation, or the pooled one.
const struct reference *reference_of(const struct reference_set *set, const struct lifetime *life);

static inline struct normal reference_component(const struct reference *reference,
                                                uint32_t component)
{
    return component < reference->component_count ? reference->components[component]
                                                  : (struct normal){0};
}

static inline struct normal reference_path(const struct reference *reference, uint32_t path)
{
    return path < reference->path_count ? reference->paths[path] : (struct normal){0};
}

static inline double reference_path_calls(const struct reference *reference, uint32_t path)
{
    return path < reference->path_count ? reference->path_calls[path] : 0;
}

#endif
