// SPDX-License-Identifier: MIT
//
// What another server's turn (peer_turn.h) is called in a path: its own message's time where that
// server was captured, too; a wait for it; or for a connection to it, of which all were taken.
#ifndef ANALYSIS_DECOMPOSITION_PATH_PEERS_H
#define ANALYSIS_DECOMPOSITION_PATH_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/decomposition/path_core.h"
#include "analysis/decomposition/peer_turn.h"
#include "analysis/timeline/thread_states.h"

// Goes along the peer's own thread, for a turn's time; form: what the wait is called, with a %s for
// whom. False: that thread is not known.
typedef bool answerer_follower(struct path *path, const struct peer_turn *turn, const char *form);

// The time of a turn, which ends with it.
void path_add_peer_turn(struct path *path, const struct peer_turn *turn, answerer_follower *follow);

// The sleep of a thread that wanted a connection to another server when all of them were taken:
// until whoever had one woke it at last, or in vain, until a timer did; what it waits for after
// that may be something else. False: it is no such sleep.
bool path_add_pool_wait(struct path *path, const struct thread_period *period,
                        const struct waker *waker, const struct waker *at_last, int64_t woken_ns);

// The sleep of an event loop with the request unfinished, if whatever it waited for came from one
// peer. False: not so.
bool path_add_only_peer(struct path *path, const struct thread_period *period,
                        answerer_follower *follow);

// The sleep of a thread for a time after which it asks another server the same again: nothing but
// that time had to pass. False: not so.
bool path_add_asked_again(struct path *path, const struct thread_period *period);

#endif
