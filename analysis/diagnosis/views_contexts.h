// SPDX-License-Identifier: MIT
//
// Which contexts the messages' cores were in (views.h): from M(n) to M(h) the core of the hand-off,
// and from then until the reply was sent the cores on which the message's thread ran (while it did
// not run: the core it ran on next). Summed over each side, and of the slice message by message.
#ifndef ANALYSIS_DIAGNOSIS_VIEWS_CONTEXTS_H
#define ANALYSIS_DIAGNOSIS_VIEWS_CONTEXTS_H

#include "analysis/diagnosis/diagnosis.h"

struct context_sums;

// NULL: no memory. `in` must outlive it.
struct context_sums *context_sums_new(const struct diagnosis_input *in);
void context_sums_free(struct context_sums *sums);

// Adds a message to a side (VIEW_SLICE, VIEW_REFERENCE). -1: no memory.
int context_sums_add(struct context_sums *sums, uint64_t lifetime, int side);

// Sets the contexts of the views, which of them each message of the slice was in and for how long,
// and the calls. Once. -1: no memory.
int context_sums_take(struct context_sums *sums, struct diagnosis_views *out);

#endif
