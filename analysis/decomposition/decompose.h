// SPDX-License-Identifier: MIT
//
// Decomposes one lifetime: how many of its nanoseconds belong to which component. On the server's
// cores the innermost context decides, for every piece of time that the message spent there (NSight
// §5.2, phases 1, 2 and 4); elsewhere whole stages are components. Where spans name functions, the
// message's own time in each context is divided among them, too (phase 3).
#ifndef ANALYSIS_DECOMPOSITION_DECOMPOSE_H
#define ANALYSIS_DECOMPOSITION_DECOMPOSE_H

#include <stdint.h>

#include "analysis/decomposition/decomposer.h"

struct component_share {
    uint64_t lifetime;
    uint32_t component;
    double ns; // > 0
};
struct component_share_array ARRAY_OF(struct component_share);

// Appends the shares of one whole lifetime, or of the part in->part of it, by ascending component;
// they add up to its duration, but for rounding. paths gets the functions by ascending path, but
// only if all of them are known (decomposer->traced); it may be NULL. -1: no memory.
int decompose(struct decomposer *decomposer, uint64_t lifetime, struct component_share_array *out,
              struct path_share_array *paths);

#endif
