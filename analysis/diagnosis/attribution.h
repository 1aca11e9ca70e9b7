// SPDX-License-Identifier: MIT
//
// From how long each component took beyond the reference to causes: how much each adds to each
// message, never more in sum than the message's deviation, and how much that explains.
#ifndef ANALYSIS_DIAGNOSIS_ATTRIBUTION_H
#define ANALYSIS_DIAGNOSIS_ATTRIBUTION_H

#include "analysis/decomposition/decompose.h"
#include "analysis/diagnosis/diagnosis.h"
#include "analysis/diagnosis/reference.h"

// Explains out->messages (lifetime and order are set, slowest first): fills their deviations, the
// attributions, the causes and the coverage. -1: no memory.
int attribute(struct diagnosis *out, struct decomposer *decomposer,
              const struct reference_set *references);

#endif
