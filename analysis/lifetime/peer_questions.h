// SPDX-License-Identifier: MIT
//
// What servers ask of other servers on connections that several requests share at once, as an event
// loop's only one to Redis, or a proxy's: each send is a question of its own, and those that follow
// do not wait for its answer. Which receive call brought that is known where the other server was
// captured: it answers what it has read before it reads on.
#ifndef ANALYSIS_LIFETIME_PEER_QUESTIONS_H
#define ANALYSIS_LIFETIME_PEER_QUESTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/calls/calls.h"
#include "analysis/timeline/time_source.h"
#include "base/array.h"
#include "base/connection.h"
#include "profiler/bpf/event_log.h"

// A call on a connection, by the connection's position in its table.
struct numbered_call {
    uint32_t connection;
    uint32_t call;
    int64_t entry_ns;
};
struct numbered_call_array ARRAY_OF(struct numbered_call);

int numbered_call_compare(const void *left, const void *right); // by connection, then by entry

// Those of a table's connections, so ordered. -1: no memory.
int calls_by_connection(const struct application_calls *calls, const struct connection *connections,
                        size_t connection_count, struct numbered_call_array *out);

struct peer_question {
    uint32_t sent, received; // calls: that asked, and that brought the end of the answer, or closed
                             // the connection because none came
    uint64_t request_end, reply_begin, reply_end;
    uint32_t first_request, request_count; // in peer_questions.requests
    bool goes_on;                          // with the next one: it is only a part of what was asked
};

struct asked_for {
    uint32_t request; // the accepted connection, by id
    bool sure;        // else it is only if it is replied to soon after the answer
    uint32_t thread;  // that waits for it until whoever takes the answer wakes it; 0: the same one
};

struct peer_questions {
    struct ARRAY_OF(struct peer_question) items; // by connection, then as they were asked
    struct ARRAY_OF(struct asked_for) requests;
    uint32_t *of_call; // by made call: the question it asks, or the first it answers, plus 1; or 0
};

// Whether the call answers that question, of the connection's: those from the first one on.
static inline bool peer_question_answered(const struct peer_questions *questions, size_t question,
                                          uint32_t call)
{
    return question < questions->items.count && questions->items.items[question].received == call;
}

struct peer_questions_input {
    const struct application_calls *accepted, *made; // calls on accepted connections, on made ones
    const struct numbered_call_array *order;         // the made ones by connection
    const struct connection *made_connections, *accepted_connections;
    size_t made_count, accepted_count;
    const struct event *events; // NULL: no capture
    size_t event_count;
    struct time_source clock; // of the events
};

// Of connections to captured servers on which requests overlap, or that a thread has for others; of
// others there are none. The
// caller frees either way. -1: no memory.
int peer_questions_find(const struct peer_questions_input *in, struct peer_questions *out);

// Forgets the questions of connections that different requests do not share at any one time, nor a
// thread has for others (told_answers.h): those are not told apart there.
void peer_questions_keep_shared(const struct peer_questions_input *in, struct peer_questions *out);

void peer_questions_free(struct peer_questions *questions);

#endif
