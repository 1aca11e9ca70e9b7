// SPDX-License-Identifier: MIT
//
// The ordinary request in absolute terms: what the messages around the median are made of, beside
// what the same costs at the fast end of the same window. Causes compare with the ordinary message;
// this shows that the ordinary one is slow itself, because of what, and what helps.
#ifndef ANALYSIS_DIAGNOSIS_ORDINARY_H
#define ANALYSIS_DIAGNOSIS_ORDINARY_H

#include "analysis/decomposition/components.h"
#include "analysis/diagnosis/diagnosis.h"
#include "analysis/diagnosis/reference.h"

// Appends the parts of which the messages of the reference's band are made, largest first. -1: no
// memory.
int ordinary_build(struct ordinary_part_array *out, const struct reference *reference,
                   const struct component_table *table);

#endif
