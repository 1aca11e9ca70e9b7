// SPDX-License-Identifier: MIT
//
// A whole run for ui.perfetto.dev (analysis/export/perfetto.h), in host time:
// - what each core of the server did: tasks, interrupts, softirqs, functions where there are any;
// - each thread's socket calls, where the shim was there;
// - each answered request as a slice with its stages inside, in as few rows as they need;
// - flows from a request's send to the call that received it, to the call that answered it, to the
//   reply.
#ifndef ANALYSIS_RUN_PERFETTO_H
#define ANALYSIS_RUN_PERFETTO_H

#include <stdint.h>

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
// A request's flow.
static inline uint64_t run_perfetto_flow(uint64_t request)
{
    return request + 1;
}

int run_perfetto_write(const struct run_analysis *run, const char *path, struct error *err);

#endif
