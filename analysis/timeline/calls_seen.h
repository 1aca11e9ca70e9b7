// SPDX-License-Identifier: MIT
//
// In which system calls threads run, as far as they were seen in one: where the timer interrupted
// them, and where they went to sleep. Seen twice in the same call, a thread was in it all the time
// between; of calls that are shorter nothing is known. A call is known again by what the program
// had in its registers, and a loop may have the same in them each time: so nothing is kept of those
// in which the kernel is never at work for long, nor of those that wait for something to do or
// that send, but of reads and writes in which it never slept, which may be of files; and no call
// lasts beyond the thread's next wait for sockets. Whoever knows the thread's calls on sockets
// looks at them as well: where these are not known, a read or write is no proof.
#ifndef ANALYSIS_TIMELINE_CALLS_SEEN_H
#define ANALYSIS_TIMELINE_CALLS_SEEN_H

#include <stdint.h>

#include "analysis/timeline/timeline_builder.h"
#include "profiler/bpf/event_log.h"

// By a VECTOR_ENTRY that says which thread had the core; by a BLOCKED. -1: no memory.
int calls_seen_at_timer(struct timeline_builder *builder, const struct event *event,
                        int64_t time_ns);
int calls_seen_asleep(struct timeline_builder *builder, const struct event *event, int64_t time_ns);

// Makes the host's list of what was seen: by thread and time, disjoint. -1: no memory.
int calls_seen_settle(struct timeline_builder *builder);

#endif
