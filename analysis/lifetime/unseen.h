// SPDX-License-Identifier: MIT
//
// How long messages were on cores of which nobody knows what they did then: cores that the capture
// did not record, or not yet (it follows those that deliver, profiler/events/events_capture.h), and
// times whose records are missing. A verdict says so, because what held messages up there is in no
// cause.
#ifndef ANALYSIS_LIFETIME_UNSEEN_H
#define ANALYSIS_LIFETIME_UNSEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/lifetime.h"
#include "analysis/timeline/span.h"
#include "base/array.h"

// Times in which several messages were on the core count once.
struct unseen_core {
    uint16_t core;
    bool received;          // it delivered these messages; false: it ran the thread that took them
    uint64_t unrecorded_ns; // while the core was not recorded
    uint64_t lost_ns;       // while it was, but records are missing
};
struct unseen_array ARRAY_OF(struct unseen_core);

struct unseen_time {
    struct unseen_array cores;       // those with any such time, the longest unrecorded first
    uint64_t unrecorded_ns, lost_ns; // over all of them
    uint64_t unrecorded;             // messages on cores that were not recorded then
};

// Looks at the whole lifetimes: from M(n) to M(h) at the core that handed over, from there to the
// reply at the core that took the bytes. The caller frees. -1: no memory.
int unseen_time_build(struct unseen_time *out, const struct lifetime *lives, size_t count,
                      const struct host_timeline *server);
void unseen_time_free(struct unseen_time *unseen);

#endif
