// SPDX-License-Identifier: MIT
//
// Takes one lifetime apart: how many of its nanoseconds belong to which component. On the server's
// cores it goes by the innermost context of every piece of time the message spent there (NSight
// §5.2, phases 1, 2 and 4); elsewhere whole stages are components. Where spans name functions, the
// message's own time in each context is divided among them, too (phase 3).
#ifndef ANALYSIS_DIAGNOSIS_DECOMPOSE_H
#define ANALYSIS_DIAGNOSIS_DECOMPOSE_H

#include <stdint.h>

#include "analysis/diagnosis/decomposer.h"

struct component_share {
    uint64_t lifetime;
    uint32_t component;
    double ns; // > 0
};
struct component_share_array ARRAY_OF(struct component_share);

// Appends the shares of one whole lifetime, or of the part of it that in->part says, by ascending
// component; they add up to how long that took, to within rounding. paths: gets the functions, by
// ascending path, nothing unless all are known (decomposer->traced); may be NULL. -1 when memory
// runs out.
int decompose(struct decomposer *decomposer, uint64_t lifetime, struct component_share_array *out,
              struct path_share_array *paths);

#endif
