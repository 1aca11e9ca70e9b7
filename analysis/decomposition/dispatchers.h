// SPDX-License-Identifier: MIT
//
// A thread that tells others what has become of their jobs, one after the other, as the one that
// reads the results of a pool's processes (multiprocessing.Pool). It wakes whoever waits for a
// result, but what it did and slept for before was for others: what that one waited for is the last
// word that it got.
#ifndef ANALYSIS_DECOMPOSITION_DISPATCHERS_H
#define ANALYSIS_DECOMPOSITION_DISPATCHERS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/timeline/thread_states.h"

enum dispatched {
    DISPATCHED_NOT,     // nothing says that the thread dispatches: its time is the other's
    DISPATCHED_WORD,    // by the word of whoever ended its last sleep
    DISPATCHED_SEVERAL, // by one of several words: nobody knows whose
};

// `thread` woke `sleeper`, which had waited for it from begin_ns on, at end_ns. Into *sleep its
// last sleep before that, for work that another thread gave it; as if it had begun at begin_ns, up
// to when it was ended.
enum dispatched dispatcher_word(const struct host_timeline *host, uint32_t thread, uint32_t sleeper,
                                int64_t begin_ns, int64_t end_ns, struct thread_period *sleep);

// Whether a thread ended the wait of any of its process but `sleeper` for its word, within a time.
bool dispatcher_gave_word(const struct host_timeline *host, uint32_t thread, uint32_t sleeper,
                          int64_t begin_ns, int64_t end_ns);

#endif
