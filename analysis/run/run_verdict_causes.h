// SPDX-License-Identifier: MIT
//
// What a diagnosis found, in the verdict's words: whom these requests waited for, what helps, and
// whose requests held the others up. Each appends to out, of VERDICT_BYTES.
#ifndef ANALYSIS_RUN_VERDICT_CAUSES_H
#define ANALYSIS_RUN_VERDICT_CAUSES_H

#include "analysis/run/run_analysis.h"

// Share of the extra time, or of a thread's, from which on a part is named. The first cause is
// named in any case.
#define WORTH_NAMING 0.02

// The largest causes with their shares alone.
void verdict_append_causes(char *out, const struct diagnosis *diagnosis);

// The whole of a diagnosis that is available.
void verdict_append_diagnosis(char *out, const struct run_analysis *run,
                              const struct diagnosis *diagnosis);

// Where the ordinary request is slow itself: what it has most of that should not be there, and what
// helps.
void verdict_append_ordinary(char *out, const struct diagnosis *diagnosis);

#endif
