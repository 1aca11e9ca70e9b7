// SPDX-License-Identifier: MIT
//
// Signals that come so soon after the first one that they are the same wish: a parent of several
// threads dies one after the other, each of which tells its children (PR_SET_PDEATHSIG), and
// timeout(1) tells a process and then its group. Whoever ends at once at a second signal waits for
// a later one.
#ifndef BASE_ONE_WISH_H
#define BASE_ONE_WISH_H

#include <signal.h>
#include <stdint.h>

enum { ONE_WISH_MS = 100 };

// Takes what comes of these signals, which are blocked, until ONE_WISH_MS after told_ns, the time
// of the first one (monotonic_ns()), so that it does not end the program when they are open again.
void one_wish_take_rest(const sigset_t *signals, int64_t told_ns);

#endif
