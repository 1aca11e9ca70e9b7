// SPDX-License-Identifier: MIT
//
// Which contexts the messages' cores were in (views.h), summed up message by message.
#ifndef ANALYSIS_DIAGNOSIS_VIEWS_CONTEXTS_H
#define ANALYSIS_DIAGNOSIS_VIEWS_CONTEXTS_H

#include "analysis/diagnosis/diagnosis.h"

struct context_sums; // by role, core and context
struct context_sums *context_sums_new(const struct diagnosis_input *in);
void context_sums_free(struct context_sums *sums);
int context_sums_add(struct context_sums *sums, uint64_t lifetime, int side);
int context_sums_take(const struct context_sums *sums, struct diagnosis_views *out);

#endif
