// SPDX-License-Identifier: MIT
//
// A message is taken apart along all that the cores did in its life. Where a server stood still
// under load these are very many lives of very many pieces each, so only as many messages are
// walked along as so many pieces allow: the time that an analysis takes grows with its recording,
// and not with how long requests took.
#ifndef ANALYSIS_DIAGNOSIS_WALK_BUDGET_H
#define ANALYSIS_DIAGNOSIS_WALK_BUDGET_H

#include <stddef.h>

#include "analysis/diagnosis/diagnosis.h"

// Of how many of `count` messages, whose lives add up to lives_ns, the pieces are at most `pieces`,
// or the part of these that goes with the analysis' reference_most: `least` at least, and all where
// these are fewer.
size_t walk_budget(const struct diagnosis_input *in, double pieces, double lives_ns, size_t count,
                   size_t least);

#endif
