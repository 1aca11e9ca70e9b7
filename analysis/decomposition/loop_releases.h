// SPDX-License-Identifier: MIT
//
// Whose request it was that had an event loop answer a message at last which it had put off: a
// server that keeps its clients waiting for one another, as Redis does with BLPOP, XREAD and WAIT,
// answers the one when it has read what the other sends.
#ifndef ANALYSIS_DECOMPOSITION_LOOP_RELEASES_H
#define ANALYSIS_DECOMPOSITION_LOOP_RELEASES_H

#include <stdint.h>

#include "analysis/decomposition/path_core.h"
#include "analysis/timeline/thread_states.h"

// The sleep of a loop with the message unfinished: the thread of another program of this host that
// sent the one request which the loop read, of nobody else's connection, between its last waking
// and the reply, after which it answered nobody else that it had put off. 0: it asked another
// server for the message; something else woke it; it read several, or released several, as it does
// whom it had paused; the sender is not on this host, asked for the message itself, or what it did
// meanwhile is not known.
uint32_t loop_releaser(const struct path *path, const struct thread_period *period);

#endif
