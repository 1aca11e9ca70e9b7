// SPDX-License-Identifier: MIT
//
// Who had what a thread waited for in vain, up to a time: a semaphore's units, a lock, a place in a
// pool. Nobody woke that thread; but whoever gives what it asked for to the next that waits had it
// all along, as long as somebody waited for it without a break since: else it would have been given
// earlier.
#ifndef ANALYSIS_DECOMPOSITION_VAIN_WAITS_H
#define ANALYSIS_DECOMPOSITION_VAIN_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/timeline/thread_states.h"

// A timer ended that sleep of a thread in futex: who gave what it had asked for to whom it woke at
// *given_ns, the first of those that waited for the same. The same is what is at the same address;
// in CPython, where each that waits does so at one of its own, what others of the process waited
// for as long at most: then only of one that did not itself wait for a thread or a socket for half
// of the sleep, and only while those that wait are served in turn, as they are for one thing. Else
// the only one that gives it, again and again; then *given_ns is the period's end. False: nobody
// was seen to, and *giver and *given_ns stay.
bool vain_wait_giver(const struct host_timeline *host, const struct thread_period *period,
                     struct waker *giver, int64_t *given_ns);

#endif
