// SPDX-License-Identifier: MIT
//
// The stamps that the records of a connection give its requests.
#ifndef ANALYSIS_LIFETIME_JOIN_STAMPS_H
#define ANALYSIS_LIFETIME_JOIN_STAMPS_H

#include <stddef.h>
#include <stdint.h>

struct joiner; // joiner.h
struct lifetime;

// Gives all requests of a client's connection their stamps, in one way along it.
void join_stamp_connection(struct joiner *joiner, size_t client);

// A segment's record says where it ends only. But when it was written after the bytes had gone
// further up, it is of later bytes. Segments and hand-offs are timed by the same clock.
void join_check_segment(struct joiner *joiner, struct lifetime *life, int64_t further_up_ns);

#endif
