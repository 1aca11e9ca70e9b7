// SPDX-License-Identifier: MIT
//
// Another's taillight, or perf, is another program like any other: only what records this run is
// Taillight itself.
#ifndef ANALYSIS_TIMELINE_OTHER_RECORDINGS_H
#define ANALYSIS_TIMELINE_OTHER_RECORDINGS_H

#include <jansson.h>

#include "analysis/timeline/span.h"

// Names the tasks of recordings that are none of this run's so: "another taillight". own: the
// numbers of the processes that the run consisted of as its capture began, which with their
// children are its own (`own_processes` of capture.json); NULL: not known, nothing is renamed. Nor
// is a thread whose process is not on record. -1: no memory.
int other_recordings_name(struct host_timeline *host, const json_t *own);

#endif
