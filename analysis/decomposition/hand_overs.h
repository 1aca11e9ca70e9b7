// SPDX-License-Identifier: MIT
//
// A message that one thread reads and another one answers lies in a queue until that one is free,
// or is somewhere else in between: with a timer, or a third thread. A worker that goes to sleep
// until there is work had none in its queue, and who woke it gave it the message. Where one thread
// finds out which connections have something, and others read from these, it is the connection that
// lies in the queue.
#ifndef ANALYSIS_DECOMPOSITION_HAND_OVERS_H
#define ANALYSIS_DECOMPOSITION_HAND_OVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/decomposition/diagnosis_input.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/timeline/thread_states.h"

struct hand_over {
    int64_t left_ns;            // the thread that had read it turned to other work
    struct thread_period sleep; // of the one that answers, until it was given the message
};

// Whether the thread that answers was given the message by another one than had read it: after it
// had turned from all else, at taken_ns, it awaited work first. left_ns: when the one that had read
// it made its next call.
bool hand_over_find(const struct diagnosis_input *in, const struct lifetime *life, uint32_t replier,
                    int64_t received_ns, int64_t left_ns, int64_t taken_ns, int64_t reply_ns,
                    struct hand_over *over);

// [begin_ns, end_ns) of the way to the thread that read the message: its connection lay in the
// queue of those that have something, and that thread, which never waits for connections itself,
// was still at another one's request.
struct queued_connection {
    int64_t begin_ns, end_ns;
};

// Whether it did so between handoff_ns and received_ns: another thread of the process waited for
// connections, and was told then.
bool queued_connection_find(const struct diagnosis_input *in, const struct lifetime *life,
                            int64_t handoff_ns, int64_t received_ns, struct queued_connection *out);

#endif
