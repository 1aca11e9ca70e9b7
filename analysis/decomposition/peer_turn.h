// SPDX-License-Identifier: MIT
//
// When it was another server's turn: the part of a thread's time in which it waited for the answer
// to what it had asked on a connection of its own. That lasts until the thread was woken from its
// last sleep before it got the answer: had the answer been there before, it had not slept.
#ifndef ANALYSIS_DECOMPOSITION_PEER_TURN_H
#define ANALYSIS_DECOMPOSITION_PEER_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/decomposition/decomposer.h"
#include "analysis/timeline/thread_states.h"

struct peer_turn {
    const struct peer_wait *wait;
    int64_t begin_ns, end_ns;
    bool own;   // it asked for the message; else for another one, and could do nothing else
    bool loops; // it slept waiting for events: whatever came it would have seen to
};

// The first turn within [begin_ns, end_ns) of a thread that has the message, or that the message
// waits for. False: there is none.
bool peer_turn_next(const struct diagnosis_input *in, const struct lifetime *life, uint32_t thread,
                    int64_t begin_ns, int64_t end_ns, struct peer_turn *turn);

// The thread of the peer that woke the one which waited at the end of a turn, or the only one that
// the peer has, where it runs on the same host, outside of the capture, and all that this thread
// did meanwhile is known. False: none.
bool peer_turn_answerer(struct decomposer *decomposer, uint32_t thread,
                        const struct peer_turn *turn, uint32_t *answerer);

// "redis-server (127.0.0.1:6379)".
const char *peer_turn_name(const struct diagnosis_input *in, const struct peer_wait *wait);

// What was waited for: that, or "a connection to" it, "in vain" where none came, or "another try
// at" it. The peer may do nothing for a request that has no connection yet: its queue of
// connections is full, or what opens them is dropped.
enum { PEER_TURN_BYTES = PEER_NAME_BYTES + 32 };
void peer_turn_what(const struct diagnosis_input *in, const struct peer_wait *wait, char *out,
                    size_t bytes);

// The class of remedy.
const char *peer_turn_category(const struct peer_wait *wait);

// The other server as a tier: its name where it was captured, too.
const char *peer_turn_tier(const struct diagnosis_input *in, const struct peer_wait *wait);

// Of a sleep in which a thread waited for sockets, for nobody knows whose request: the wait for the
// only peer that it had asked anything meanwhile. NULL: there is none, or more than one.
const struct peer_wait *peer_turn_only(const struct diagnosis_input *in, uint32_t thread,
                                       int64_t begin_ns, int64_t end_ns);

// Of a thread's sleep for a time: the question before it, if the same thread asked the same peer as
// many bytes on the same connection right after it, for the same request: it asks again and again
// until it likes the answer, as who tries to get a lock in Redis. NULL: it does not.
const struct peer_wait *peer_turn_asked_again(const struct diagnosis_input *in,
                                              const struct lifetime *life,
                                              const struct thread_period *period);

// Of a sleep that another thread ended, at woken_ns or before, which had got an answer from a peer
// meanwhile: how many connections its process has to that peer, if all of them were taken. 0: not
// so.
unsigned peer_turn_pool(const struct diagnosis_input *in, uint32_t waker, int64_t begin_ns,
                        int64_t end_ns, int64_t woken_ns, const struct peer_wait **wait);

// Of a thread's sleep that nobody ended: how many connections its process has to a peer, if other
// threads had all of them, and there is no other such peer. 0: not so.
unsigned peer_turn_pool_in_vain(const struct diagnosis_input *in, uint32_t thread, int64_t begin_ns,
                                int64_t end_ns, const struct peer_wait **wait);

// Of a time in which an event loop that has the message slept, and it was a peer's turn for others:
// how many connections its process has to that peer, if all of them were taken, and the message
// asked the same peer on one of them later. 0: not so. *in_vain: it may as well have asked nobody,
// and they were taken until it replied; whether it has.
unsigned peer_turn_queue(const struct diagnosis_input *in, const struct lifetime *life,
                         const struct peer_wait *wait, int64_t begin_ns, int64_t end_ns,
                         bool *in_vain);

// Whether a thread asks another server for the message, or for nobody knows whom, between the
// message's arrival and until_ns.
bool peer_turn_asks(const struct diagnosis_input *in, const struct lifetime *life, uint32_t thread,
                    int64_t until_ns);

// When it does so for the first time from since_ns on; else when it replies. False: for whom it
// asks then nobody knows.
bool peer_turn_asks_next(const struct diagnosis_input *in, const struct lifetime *life,
                         uint32_t thread, int64_t since_ns, int64_t *at_ns);

// The first part of [begin_ns, end_ns) in which the thread that has the message's core works for
// what the message's server asked of it: it belongs to a peer whose turn it was on a connection of
// that server. Where the peer was captured, it had that very request. False: there is none.
bool peer_turn_works(const struct diagnosis_input *in, const struct lifetime *life,
                     const struct span *task, int64_t begin_ns, int64_t end_ns,
                     struct peer_turn *turn);

#endif
