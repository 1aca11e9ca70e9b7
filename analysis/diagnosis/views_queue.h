// SPDX-License-Identifier: MIT
//
// What was ahead of one message, and which messages blocked it (views.h).
#ifndef ANALYSIS_DIAGNOSIS_VIEWS_QUEUE_H
#define ANALYSIS_DIAGNOSIS_VIEWS_QUEUE_H

#include "analysis/diagnosis/diagnosis.h"

// What one message had ahead of it; appends its blockers. by_lifetime: for each lifetime, the sums
// of what it blocked; may be NULL. -1: no memory.
int view_queue(const struct diagnosis_input *in, uint64_t lifetime, struct message_view *out,
               struct blocker_array *blockers, struct named_blocker *by_lifetime);

#endif
