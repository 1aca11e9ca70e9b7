// SPDX-License-Identifier: MIT
//
// Along the time of a thread that has a message, or that its thread waits for: critical_path.c.
#ifndef ANALYSIS_DECOMPOSITION_PATH_WALK_H
#define ANALYSIS_DECOMPOSITION_PATH_WALK_H

#include <stdint.h>

#include "analysis/decomposition/path_core.h"
#include "analysis/timeline/thread_states.h"

// All that the path's thread did in [begin_ns, end_ns).
void path_follow(struct path *path, int64_t begin_ns, int64_t end_ns);

// A sleep of that thread, whose end is followed back.
void path_sleep(struct path *path, const struct thread_period *period);

#endif
