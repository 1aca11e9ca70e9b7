// SPDX-License-Identifier: MIT
//
// When TCP held back what a server had asked others, on a connection that it had made itself: the
// server's own kernel has it then, and the other one does not know of it.
#ifndef ANALYSIS_LIFETIME_QUESTION_HOLDS_H
#define ANALYSIS_LIFETIME_QUESTION_HOLDS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/calls/calls.h"
#include "analysis/lifetime/peer_questions.h"
#include "analysis/timeline/time_source.h"
#include "base/array.h"
#include "base/connection.h"
#include "profiler/bpf/event_log.h"

struct question_hold {
    uint32_t connection; // the made one, by its position in their table
    uint8_t why;         // enum held_reason
    int64_t begin_ns, end_ns;
    uint64_t sent; // up to this offset TCP had sent
};
struct question_hold_array ARRAY_OF(struct question_hold); // by connection, in order of time

struct question_holds_input {
    const struct event *events; // NULL: no capture
    size_t event_count;
    struct time_source clock;
    const struct application_calls *calls;   // on the made connections
    const struct numbered_call_array *order; // these by connection
    const struct connection *connections;
    size_t connection_count;
};

// Those that are TCP's own doing, not the other end's. The caller frees either way. -1: no memory.
int question_holds_find(const struct question_holds_input *in, struct question_hold_array *out);

// The first within [begin_ns, end_ns) that had any byte of a connection before `request_end`. NULL:
// there is none.
const struct question_hold *question_held(const struct question_hold_array *all,
                                          uint32_t connection, uint64_t request_end,
                                          int64_t begin_ns, int64_t end_ns);

#endif
