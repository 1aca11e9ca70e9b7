// SPDX-License-Identifier: MIT
//
// When a runtime's collector was at work beside its program, as Go's is: from the first piece of
// its marking to the last, whichever threads did them and whatever ran in between. Nothing that the
// program drops meanwhile can be used again before that is over, so that what it needs is new
// memory.
#ifndef ANALYSIS_TIMELINE_COLLECTIONS_H
#define ANALYSIS_TIMELINE_COLLECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/timeline/span.h"

// Finds the collections of a host whose detours and owners are in order: all that was marked
// between one time that the world was stopped and the next. A collector that never stops the world
// beside its marking does all of it at once, and its detours say enough. -1: no memory.
int collections_settle(struct host_timeline *host);

// Whether the collector of the thread's process is at work at `time_ns`; *until_ns: when that
// changes next. host may be NULL.
bool collector_at_work(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
                       int64_t *until_ns);

#endif
