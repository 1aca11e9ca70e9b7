// SPDX-License-Identifier: MIT
//
// Whom a thread waits for in futex, for a lock or a condition: not always the one that woke it. It
// may try again and again, each time for a while; and a lock goes through many hands, each of which
// has it for a moment, where one had it for long and the others queued behind that one.
#ifndef ANALYSIS_DECOMPOSITION_LOCK_WAITS_H
#define ANALYSIS_DECOMPOSITION_LOCK_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/decomposition/decomposer.h"
#include "analysis/timeline/thread_states.h"

// Who ended such a wait. A program that has nothing to do with the sleeper's only had the core as
// the kernel woke that one, in an interrupt that nobody saw: kind WAKER_UNKNOWN.
struct waker lock_waker(const struct host_timeline *host, const struct waking *waking);

// Of a wait that is made again and again, each time for a while at most, as Python's threads wait
// for their interpreter's lock: whoever ends the last of them, or has what they wait for meanwhile.
// waker: what ended this one, which is the answer for all other waits. *woken_ns: when that one
// woke the thread; period->end_ns: in the end of this one, if it did at all.
struct waker lock_waker_at_last(struct decomposer *decomposer, uint32_t thread,
                                const struct thread_period *period, struct waker waker,
                                int64_t *woken_ns);

// Of a wait that followed a stint and that `waker` ended at end_ns: whether another thread had what
// it was for before, up to *since_ns, within [begin_ns, end_ns). Who ends a wait had itself waited
// so until it was woken then, and did next to nothing in between; or that other one then gave it to
// somebody who waited at the same word.
bool lock_passed_on(const struct host_timeline *host, const struct thread_stint *stint,
                    uint32_t waker, int64_t begin_ns, int64_t end_ns, struct waker *before,
                    int64_t *since_ns);

#endif
