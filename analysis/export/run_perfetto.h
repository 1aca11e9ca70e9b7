// SPDX-License-Identifier: MIT
//
// A run, or what was asked for of it, for ui.perfetto.dev (analysis/export/perfetto.h), in host
// time:
// - what each core of the server did: tasks, interrupts, softirqs, functions where there are any;
// - each thread's socket calls, where the shim was there;
// - each answered request as a slice with its stages inside, in as few rows as they need;
// - flows from a request's send to the call that received it, to the call that answered it, to the
//   reply;
// - how many requests the server had, and how many were due a second.
#ifndef ANALYSIS_RUN_PERFETTO_H
#define ANALYSIS_RUN_PERFETTO_H

#include <stdint.h>

#include "analysis/export/perfetto_extent.h"
#include "analysis/run/run_analysis.h"
#include "base/error.h"

// Numbers of tracks, for tests.
static inline uint64_t run_perfetto_core_track(uint16_t core)
{
    return (uint64_t)1 << 40 | core;
}
static inline uint64_t run_perfetto_thread_track(uint32_t thread)
{
    return (uint64_t)2 << 40 | thread;
}
static inline uint64_t run_perfetto_row_track(uint32_t row)
{
    return (uint64_t)3 << 40 | row;
}
enum { RUN_PERFETTO_QUEUE_TRACK = 4, RUN_PERFETTO_RATE_TRACK = 5 };
// A request's flow.
static inline uint64_t run_perfetto_flow(uint64_t request)
{
    return request + 1;
}

// What only reaches into the extent is there whole.
int run_perfetto_write(const struct run_analysis *run, enum perfetto_extent extent,
                       const char *path, struct error *err);

#endif
