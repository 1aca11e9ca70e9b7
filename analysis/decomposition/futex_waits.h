// SPDX-License-Identifier: MIT
//
// A thread's waits in futex by what they are for (struct futex_wait), and what ended them.
#ifndef ANALYSIS_DECOMPOSITION_FUTEX_WAITS_H
#define ANALYSIS_DECOMPOSITION_FUTEX_WAITS_H

#include <stdbool.h>

#include "analysis/timeline/span.h"

// The futex call in which a thread went to sleep after a stint; NULL: not known.
const struct futex_wait *futex_wait_after(const struct host_timeline *host,
                                          const struct thread_stint *stint);

// All waits at the word of one, of whichever process, in order of time.
struct futex_word {
    const struct futex_wait *waits;
    size_t count;
};
struct futex_word futex_word_of(const struct host_timeline *host, const struct futex_wait *wait);

// The waking that ended a wait; NULL: none was seen.
const struct waking *futex_waking(const struct host_timeline *host, const struct futex_wait *wait);

// Whether a waking may be that of the timer which limits the wait that it ended.
bool futex_timer_may_end(const struct host_timeline *host, const struct waking *waking);

#endif
