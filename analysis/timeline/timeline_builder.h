// SPDX-License-Identifier: MIT
//
// The state while the timeline of a host is built (timeline.c): what core_spans.c makes of a core's
// events is its spans and its threads' stints, what thread_records.c makes of them the lists of
// what happened to threads.
#ifndef ANALYSIS_TIMELINE_TIMELINE_BUILDER_H
#define ANALYSIS_TIMELINE_TIMELINE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/span.h"
#include "analysis/timeline/time_source.h"

enum { MAX_NESTED = 16 }; // interrupts and softirqs open at once on a core; Linux nests fewer

// A thread was seen in a system call, or in none.
struct call_sight {
    int64_t time_ns;
    uint32_t thread;
    uint32_t instance; // the same for the same call; 0: in none
    uint16_t call;
    bool asleep; // it went to sleep in it
};
struct call_sight_array ARRAY_OF(struct call_sight);

struct timeline_builder {
    const struct time_source *clock;
    struct host_timeline *out;
    struct name_table names;
    struct thread_moment_array processes; // by thread: the name of its process
    struct thread_moment_array disks;     // by the disk's number: its name
    struct call_sight_array sights;
    struct thread_moment_array fault_ends; // a page fault's thread has its page; by core, then time
    // The core at hand.
    struct core_timeline *core;
    uint32_t open[MAX_NESTED]; // indices of nested spans without an end yet
    unsigned depth;
    uint32_t current; // the span of depth 0
    bool started;     // who has this core is known
    bool fresh;       // and nothing but ends of earlier interrupts was seen since
    int64_t last_ns;  // of the core's latest event
    bool shown;       // who has this core was not seen to come, but is known by what it did there
    uint32_t leaver;  // the thread seen to leave, and when, that nobody saw come; 0: none was
    int64_t leaver_ns;
    uint32_t asker; // of the core's latest ASKED_ADDRESS
    uint8_t asked[16];
    uint32_t locker; // of the core's latest FILE_LOCK_NAME, and the number of that name
    uint32_t locked;
};

#endif
