// SPDX-License-Identifier: MIT
//
// What each thread of the load did when: the moments at which it sent a request or had read a
// reply, from the stamps it took itself. With the kernel's events of the load's cores they tell
// what a late request of the load waited for (diagnosis/client_path.h).
#ifndef ANALYSIS_LIFETIME_CLIENT_TURNS_H
#define ANALYSIS_LIFETIME_CLIENT_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/lifetime.h"
#include "analysis/timeline/span.h"
#include "base/array.h"
#include "base/connection.h"

// A thread had no request in flight, yet sent none.
struct bare_time {
    uint32_t thread;
    int64_t begin_ns, end_ns;
};

struct client_turns {
    uint32_t *threads; // by connection: the thread of the load that has it; 0: not known
    size_t connection_count;
    // Each of these threads once, ascending, for client_turns_has: it is asked of every span.
    struct ARRAY_OF(uint32_t) distinct;
    struct thread_moment_array moments;     // by thread, then by time; value: the request's index
    struct ARRAY_OF(struct bare_time) bare; // of threads that opened connections again; as above
    uint64_t depth; // most requests in flight on a connection; 0: any number
};

// lives: one per request, joined. connections: the load's. The caller frees
// with client_turns_free, also after a failure: -1, no memory.
int client_turns_build(struct client_turns *out, const struct lifetime *lives, size_t count,
                       const struct connection *connections, size_t connection_count,
                       uint64_t depth);
void client_turns_free(struct client_turns *turns);

// The thread that sent a request; 0: not known.
uint32_t client_turns_thread(const struct client_turns *turns, const struct lifetime *life);

// Whether a thread that opened connections again had nothing in flight at that time. It sends what
// is due at once where it has a connection that is open, so of a request that was due then it had
// none. *until: how long that remains so, INT64_MAX: for good.
bool client_turns_bare(const struct client_turns *turns, uint32_t thread, int64_t time_ns,
                       int64_t *until);

// Whether a thread sent or read anything for the load.
bool client_turns_has(const struct client_turns *turns, uint32_t thread);

#endif
