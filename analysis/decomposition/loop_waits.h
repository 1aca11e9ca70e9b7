// SPDX-License-Identifier: MIT
//
// What an event loop waits for at last that turns to others with the message unfinished: each of
// them wakes it, but none had the message wait.
#ifndef ANALYSIS_DECOMPOSITION_LOOP_WAITS_H
#define ANALYSIS_DECOMPOSITION_LOOP_WAITS_H

#include <stdbool.h>

#include "analysis/decomposition/path_core.h"
#include "analysis/timeline/thread_states.h"

// An event loop that waits with the message unfinished is woken for others as well, by packets and
// timers. When at last a worker wakes it and it answers, that is what the message waited for: the
// worker's waking that follows; of a process that it forked, which is there for one message, its
// own. When a timer had the loop ask another server for it, or answer without, the message was put
// off until that time, whosever packets came meanwhile. NULL: neither.
const struct waking *loop_waking_that_counts(const struct path *path,
                                             const struct thread_period *period);

// Whether a loop that had sent a part of the reply, and asked no other server, waits until its
// socket has room for the rest, whatever else woke it; not so where a worker or a timer lets it go
// on at last. Whom it asked is known where the shim sees its waits.
bool loop_waits_for_room(const struct path *path, const struct thread_period *period);

// Whether a loop that asked no other server waits with the message unfinished, and the packets that
// woke it were requests, so far as its calls tell: it had put the message off, for what nobody saw.
// Not so a thread of Go's, another one of which may go on with it, and which asks others unseen.
bool loop_puts_off(const struct path *path, const struct thread_period *period);

// Whether the message's connection lay in the server's queue while its thread slept for other
// sockets, none of which another thread made ready: it turned to accept it only later, for which
// one that has room is woken. Where the calls do not say when, as it turned to the message.
bool loop_has_not_accepted(const struct path *path, const struct thread_period *period);

#endif
