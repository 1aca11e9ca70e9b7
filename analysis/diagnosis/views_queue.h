// SPDX-License-Identifier: MIT
//
// What was ahead of one message, and which requests that belonged to (views.h).
#ifndef ANALYSIS_DIAGNOSIS_VIEWS_QUEUE_H
#define ANALYSIS_DIAGNOSIS_VIEWS_QUEUE_H

#include "analysis/diagnosis/diagnosis.h"
#include "base/array.h"

// Sums over all messages that are looked at. Zeroed between them.
struct queue_sums {
    struct named_blocker *named; // by lifetime, then by service
    struct culprits *culprits;
};

// How long each service held up the message at hand.
struct service_times {
    struct service_time {
        double ran_ns, slept_ns;
    } * of; // by service; 0 between messages
    struct index_array touched;
};

// What one message had ahead of it; appends its blockers. sums: what each blocked is added there,
// may be NULL. -1: no memory.
int view_queue(const struct diagnosis_input *in, uint64_t lifetime, struct message_view *out,
               struct blocker_array *blockers, struct service_times *times,
               const struct queue_sums *sums);

#endif
