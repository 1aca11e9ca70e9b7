// SPDX-License-Identifier: MIT
//
// What is a part of a cause (component.whole) counts as that cause: a heavy request is one,
// whatever it did while the others waited for it. How much of a cause its parts are is kept beside
// it.
#ifndef ANALYSIS_DIAGNOSIS_CAUSE_PARTS_H
#define ANALYSIS_DIAGNOSIS_CAUSE_PARTS_H

#include <stddef.h>

#include "analysis/decomposition/components.h"
#include "analysis/diagnosis/diagnosis.h"

// All that a part added to the messages of a slice, by the part's component.
struct part_sum {
    uint32_t component;
    double ns;
};
struct part_sum_array ARRAY_OF(struct part_sum);

// Gives what parts contribute to the message whose attributions begin at `first` to their wholes,
// and adds it to sums. Causes are component numbers here. -1: no memory.
int cause_parts_fold(struct part_sum_array *sums, struct attribution_array *all, size_t first,
                     const struct component_array *components);

// The parts of the cause that a component is, the largest first, and how much of it they are, in
// words.
void cause_parts_put(struct cause *cause, uint32_t component, const struct part_sum_array *sums,
                     const struct component_array *components);

#endif
