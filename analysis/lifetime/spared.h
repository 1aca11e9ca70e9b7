// SPDX-License-Identifier: MIT
//
// When the capture did without hand-offs, departures and softirqs, because there were too many
// messages (profiler/events/events_budget.h).
#ifndef ANALYSIS_LIFETIME_SPARED_H
#define ANALYSIS_LIFETIME_SPARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/time_source.h"
#include "base/array.h"
#include "profiler/bpf/event_log.h"

struct spared_time {
    int64_t at_ns; // host time
    bool begins;   // from here on they are spared, else they are there again
};

struct spared_times ARRAY_OF(struct spared_time); // in order of time

// Gathers them from events in any order. The caller frees *out with array_free either way. -1: no
// memory.
int spared_times_find(const struct event *events, size_t count, const struct time_source *clock,
                      struct spared_times *out);

bool spared_at(const struct spared_times *times, int64_t at_ns);

#endif
