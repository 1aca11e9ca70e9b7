// SPDX-License-Identifier: MIT
//
// What a core did, from its events in order of time: tasks and idle time at depth 0, interrupts and
// softirqs nested in them, and the stint of each thread that ran. Where records are missing: see
// timeline.h. All return -1 when memory runs out.
#ifndef ANALYSIS_TIMELINE_CORE_SPANS_H
#define ANALYSIS_TIMELINE_CORE_SPANS_H

#include <stdint.h>

#include "analysis/timeline/span.h"
#include "analysis/timeline/timeline_builder.h"
#include "profiler/bpf/event_log.h"

// The core at hand from now on, whose first event is of that time.
int core_spans_begin(struct timeline_builder *builder, uint16_t core, int64_t first_ns);

// The capture ends with the core's last event: what is open then is cut there.
int core_spans_end(struct timeline_builder *builder);

// An interrupt or softirq begins, ends.
int core_spans_entry(struct timeline_builder *builder, enum span_kind kind,
                     const struct event *event, int64_t time_ns);
int core_spans_exit(struct timeline_builder *builder, enum span_kind kind,
                    const struct event *event, int64_t time_ns);

// The event says how long something took since the event before, but not when. Taken as the end of
// that time, because a core that is idle first does not notice.
int core_spans_lasted(struct timeline_builder *builder, enum span_kind kind, const char *cause,
                      const struct event *event, int64_t time_ns);

// Another thread gets the core.
int core_spans_switch(struct timeline_builder *builder, const struct event *event, int64_t time_ns);

// The core is recorded from now on. Its switches may have been seen before: then the thread that
// has it is known already.
int core_spans_watched(struct timeline_builder *builder, const struct event *event,
                       int64_t time_ns);

// A thread that was not seen to come is seen to leave.
int core_spans_unseen(struct timeline_builder *builder, const struct event *event, int64_t time_ns);

// That same thread has the core already: what is unknown ends here. Not within an interrupt, where
// it does nothing: then builder->shown stays as it was.
int core_spans_shown(struct timeline_builder *builder, const struct event *unseen, int64_t time_ns);

// The thread that has the core was named so as it came; what it does is known by its new name.
int core_spans_renamed(struct timeline_builder *builder, const struct event *event);

// Receive processing hands data to a socket.
int core_spans_handoff(struct timeline_builder *builder, const struct event *event,
                       int64_t time_ns);

// The number of the name of what the event is about.
int core_spans_name(struct timeline_builder *builder, enum span_kind kind,
                    const struct event *event, uint32_t *number);

#endif
