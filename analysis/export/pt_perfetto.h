// SPDX-License-Identifier: MIT
//
// A decoded trace for ui.perfetto.dev (analysis/export/perfetto.h). Every span becomes one slice:
// - on the track of its core: tasks, interrupts with all that is in them, gaps, idling, and what
//   ran where no task is known;
// - on the track of its thread: functions, syscalls, and what was not traced.
// Flows join the times a thread spent on a core, so that it can be followed from core to core.
#ifndef ANALYSIS_EXPORT_PT_PERFETTO_H
#define ANALYSIS_EXPORT_PT_PERFETTO_H

#include "analysis/export/perfetto.h"
#include "analysis/pt/calls/pt_span.h"
#include "analysis/pt/pt_trace.h"

// Tracks, for those who look for them.
static inline uint64_t pt_perfetto_core_track(size_t stream)
{
    return (uint64_t)1 << 40 | stream;
}
static inline uint64_t pt_perfetto_thread_track(uint32_t task)
{
    return (uint64_t)2 << 40 | task;
}

struct pt_perfetto; // a file being written

// Tracks are written right away. The trace must outlive it.
struct pt_perfetto *pt_perfetto_create(const struct pt_trace *trace, const char *path,
                                       struct error *err);

// Takes spans of a stream, as a pt_nested_sink does. Streams may come by different threads.
int pt_perfetto_take(struct pt_perfetto *export, size_t stream, const struct pt_nested_span *spans,
                     size_t count, struct error *err);

// Ends the file (failed: removes it), and frees. NULL is allowed.
int pt_perfetto_close(struct pt_perfetto *export, bool failed, struct error *err);

#endif
