// SPDX-License-Identifier: MIT
//
// From the event log of the `events` backend to spans: tasks and idle time at depth 0,
// interrupts and softirqs nested in them; and, per thread, when it was woken and when it ran.
//
// Records may be missing. An entry or exit whose other half is lost is counted (unpaired), and
// time of which nothing is known becomes a SPAN_UNKNOWN. What a core ran before its first switch is
// unknown, too, but not lost: it is marked and not counted. A core may have been recorded from some
// time on only (EVENT_WATCHED), or never but for messages: see core_timeline.recorded_ns.
#ifndef ANALYSIS_TIMELINE_TIMELINE_H
#define ANALYSIS_TIMELINE_TIMELINE_H

#include <stddef.h>

#include "analysis/timeline/span.h"
#include "analysis/timeline/time_source.h"
#include "base/error.h"
#include "profiler/bpf/event_log.h"

// Builds the timeline of a host from its events: ordered by time per core, cores in any mixture (a
// core whose events are out of order is sorted first). Any bytes may come; records that
// are not events are counted in out->damaged. Only lack of memory fails. The caller frees with
// host_timeline_free.
int host_timeline_build(const struct event *events, size_t count, const struct time_source *clock,
                        struct host_timeline *out, struct error *err);

#endif
