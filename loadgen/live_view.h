// SPDX-License-Identifier: MIT
//
// What a person sees while a load runs: rate, in flight, percentiles so far, errors, and what is
// waited for, four times a second on a terminal; nothing elsewhere.
//
// Each load thread writes counters of its own, and nobody else does: plain stores that other
// threads may read (relaxed atomics), one histogram slot and a few words a reply, no lock and no
// system call. A thread of the lowest priority reads them. Without a terminal there are none.
#ifndef LOADGEN_LIVE_VIEW_H
#define LOADGEN_LIVE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/histogram.h"
#include "base/progress.h"

struct live_counters {
    uint64_t tsc_khz; // of the histogram's ticks; written before the first reply
    uint64_t in_flight, answered, errors;
    struct histogram latency; // from the intended time, in ticks
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

struct live_view;

// Begins to show. *view is NULL when there is nobody to show it to. goal: what is waited for,
// "10 s". ERROR_FAILED: no memory or no thread.
int live_view_start(const struct progress *progress, uint32_t threads, const char *goal,
                    struct live_view **view, struct error *err);

// One for each load thread, for engine_settings.live; NULL for a NULL view.
struct live_counters *live_view_counters(struct live_view *view);

// Says what is waited for from now on.
void live_view_wait_for(struct live_view *view, const char *goal);

// Ends it, with a last look. NULL is allowed.
void live_view_stop(struct live_view *view);

#endif
