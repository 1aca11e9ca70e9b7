// SPDX-License-Identifier: MIT
//
// When all connections that a process has to another server were taken: what else wants to ask that
// one waits for a free one.
#ifndef ANALYSIS_LIFETIME_PEER_POOLS_H
#define ANALYSIS_LIFETIME_PEER_POOLS_H

#include <stdint.h>

#include "analysis/lifetime/peers.h"

// How many connections a process had to a peer all through [begin_ns, end_ns), when nearly all of
// that time it was the peer's turn on every one of them; 0: it was not.
unsigned peers_all_taken(const struct peers *peers, uint32_t process, uint32_t peer,
                         int64_t begin_ns, int64_t end_ns);

// The same of the one peer of which threads had all connections to themselves, one of whose waits
// is in *wait. 0: there is none, or more than one.
unsigned peers_pool_taken(const struct peers *peers, uint32_t process, int64_t begin_ns,
                          int64_t end_ns, const struct peer_wait **wait);

#endif
