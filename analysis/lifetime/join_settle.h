// SPDX-License-Identifier: MIT
//
// What a request's stamps are worth once all are there: those that cannot be are taken away, those
// that others tell are filled in, and its life gets its stages and its state.
#ifndef ANALYSIS_LIFETIME_JOIN_SETTLE_H
#define ANALYSIS_LIFETIME_JOIN_SETTLE_H

struct joiner; // joiner.h
struct lifetime;

// What the server's stamps say among themselves: before the clocks of two hosts are related. To be
// called in the order of the requests.
void join_settle_server(struct joiner *joiner, struct lifetime *life);

// Stages and state, once they are.
void join_finish_lifetime(struct joiner *joiner, struct lifetime *life);

#endif
