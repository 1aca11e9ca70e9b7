// SPDX-License-Identifier: MIT
//
// When the load opened its connections again after they had ended, and how long that took it: where
// a server's queue of connections is full, what TCP sends to open one is dropped, and sent again
// only after a second.
#ifndef ANALYSIS_LIFETIME_OPENINGS_H
#define ANALYSIS_LIFETIME_OPENINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/lifetime.h"
#include "analysis/timeline/time_source.h"
#include "base/array.h"
#include "base/connection.h"

// In host time, the client's.
struct opening {
    int64_t begin_ns, end_ns;
    uint32_t thread; // of the load, that has the connection
};
struct opening_array ARRAY_OF(struct opening);

struct openings {
    struct opening_array of;  // by connection, as in struct lifetime
    struct opening_array all; // when all connections of a thread were being opened; by thread, time
};

// connections: the load's, clock: of its host; begin_ns: when the load began, until when it had all
// of its connections. The caller frees with openings_free, also after a failure: -1, no memory.
int openings_build(struct openings *out, const struct connection *connections, size_t count,
                   const struct time_source *clock, int64_t begin_ns);
void openings_free(struct openings *openings);

// The first part of [begin_ns, end_ns), by the client's clock, in which the connection that took
// the message, or every one of its thread, was being opened. False: there is none.
bool opening_within(const struct openings *openings, const struct lifetime *life, int64_t begin_ns,
                    int64_t end_ns, struct opening *out);

#endif
