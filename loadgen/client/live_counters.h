// SPDX-License-Identifier: MIT
//
// The counters that a load thread keeps for the live view (loadgen/engine/live_view.h). Each thread
// writes only its own: plain stores that other threads may read (relaxed atomics), one histogram
// slot and a few words per reply, no lock and no system call.
#ifndef LOADGEN_CLIENT_LIVE_COUNTERS_H
#define LOADGEN_CLIENT_LIVE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"

struct live_counters {
    uint64_t tsc_khz; // ns per tick of the histogram; written before the first reply
    uint64_t in_flight, answered, errors;
    struct histogram latency; // latency from the intended time, in ticks
} __attribute__((aligned(64)));

static inline void live_set(uint64_t *counter, uint64_t value)
{
    __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

static inline void live_note_reply(struct live_counters *live, uint64_t latency_ticks, bool error,
                                   uint64_t in_flight)
{
    histogram_record(&live->latency, latency_ticks);
    histogram_add(&live->answered, 1);
    histogram_add(&live->errors, error);
    live_set(&live->in_flight, in_flight);
}

#endif
