// SPDX-License-Identifier: MIT
//
// The threads of its own process that a thread waits for: those that an event loop gives work to,
// which wake it from its wait for events, and those that have a lock before it.
#ifndef ANALYSIS_DECOMPOSITION_LOOP_WORKERS_H
#define ANALYSIS_DECOMPOSITION_LOOP_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/timeline/span.h"
#include "analysis/timeline/thread_states.h"

// Whether a waking ended a wait for events.
bool loop_wait_ended(const struct host_timeline *host, const struct waking *waking);

// Whether such a worker woke the thread.
bool loop_worker_woke(const struct host_timeline *host, const struct waking *waking);

// Whether a process did that its own had forked, as a CGI program's.
bool loop_child_woke(const struct host_timeline *host, const struct waking *waking);

// Whose word a thread was waiting for that `asker`, who waits for it, woke from a wait for events
// with a further job: that of the next who ends such a wait, before until_ns. NULL: nobody does.
const struct waking *loop_word_of_another(const struct host_timeline *host,
                                          const struct waking *further, uint32_t asker,
                                          int64_t until_ns);

// A worker that woke the loop from a wait of its own some time or other, nearest to the end of
// [begin_ns, end_ns), and worked all that time, but for a tenth; as it woke it. False: there is
// none, and *worker stays.
bool loop_worker_meanwhile(const struct host_timeline *host, uint32_t loop, int64_t begin_ns,
                           int64_t end_ns, struct waker *worker);

// Who has a lock during a part of a thread's wait for it, in which it tried again and again:
// *holder, who handed it over at last, if that one was not idle, too, for half of [begin_ns,
// end_ns); else one that hands it over at other times and was not. *holder stays where nobody is.
void lock_holder_meanwhile(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                           int64_t end_ns, struct waker *holder);

#endif
