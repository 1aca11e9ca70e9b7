// SPDX-License-Identifier: MIT
//
// The part of a message's critical path that lies with a thread. Every nanosecond is put into a
// state first (analysis/timeline/thread_states.h). While the thread was ready to run, and only
// then, what its core did is the cause. While it slept, whoever woke it is followed back, hop by
// hop, to what ran, a timer, a device or a peer. What nobody knows is called unknown.
#ifndef ANALYSIS_DECOMPOSITION_CRITICAL_PATH_H
#define ANALYSIS_DECOMPOSITION_CRITICAL_PATH_H

#include <stdint.h>

#include "analysis/decomposition/decomposer.h"

// Assigns [begin_ns, end_ns), in which the thread had the message, to components. replied: the time
// after the application's send call began.
void critical_path_sweep(struct decomposer *decomposer, const struct lifetime *life,
                         uint32_t thread, int64_t begin_ns, int64_t end_ns, bool replied);

// The same of [begin_ns, end_ns), in which a message was with whoever then ended the sleep of the
// thread that will answer it.
void critical_path_given(struct decomposer *decomposer, const struct lifetime *life,
                         const struct thread_period *sleep, int64_t begin_ns, int64_t end_ns);

// The same of the time until `thread`, which will answer, has turned to the message. has_work:
// there is something to do for it all the time, so that it sleeps in the midst of its work, in
// whatever.
void critical_path_free_worker(struct decomposer *decomposer, const struct lifetime *life,
                               uint32_t thread, int64_t begin_ns, int64_t end_ns, bool has_work);

#endif
