// SPDX-License-Identifier: MIT
//
// What the servers asked of other servers: the connections that they made (the shim's outgoing
// ones), when a thread was waiting on one of them and for whose request, and, where the other
// server was captured in the same run, what became of those bytes there: a lifetime of their own,
// joined as a client's requests are, by 5-tuple and byte offset. Connections that several requests
// share: peer_questions.h.
#ifndef ANALYSIS_LIFETIME_PEERS_H
#define ANALYSIS_LIFETIME_PEERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/calls/applications.h"
#include "analysis/calls/calls.h"
#include "analysis/lifetime/join.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/lifetime/question_holds.h"
#include "base/array.h"
#include "base/connection.h"
#include "base/error.h"

enum { PEER_NAME_BYTES = 84 };

struct peer {
    char name[PEER_NAME_BYTES]; // "redis-server (127.0.0.1:6379)", "10.0.0.7:5432"
    char address[64];
    uint32_t process; // of this host, that listens there; 0: not known
};

struct peer_connection {
    uint32_t peer;
    uint32_t process;          // that made it
    int64_t open_ns, close_ns; // as far as known: its first and last call
};

// On one connection it was the peer's turn from begin to end: the thread had asked, or begun to
// connect, and the call returned that got the answer, or the next part of it, or closed the
// connection because none came. Or it had given one up so, and asked the same peer again later. Who
// looks whether a server takes connections, or keeps some at hand, asks nothing on them.
struct peer_wait {
    int64_t begin_ns, end_ns;
    int64_t latest_end_ns; // of this thread's waits up to this one
    uint32_t thread;       // that got the answer, or was told of it
    uint32_t taker;        // by that thread, which took it for others; 0: the same one
    uint32_t connection;   // index into peers.connections
    uint32_t request;     // the accepted connection that it was for, by the shim's id; 0: not known
    uint32_t life;        // index into peers.lives; NO_PEER_LIFE: not captured
    uint64_t request_end; // where what was asked ends in the connection's stream; 0: nothing was
    bool exclusive;       // the thread made no other call meanwhile
    bool unasked;         // nor had it received any request before
    bool connects;        // nothing was asked yet: the connection was being opened
    bool in_vain;         // no answer came, or no connection
    bool replied;         // to what opens the connection, which was closed without a question: it
                          // was made, or refused
    bool again;           // it is nobody's turn: the thread waits before it tries again
};
#define NO_PEER_LIFE UINT32_MAX

struct peers {
    struct ARRAY_OF(struct peer) items;
    struct ARRAY_OF(struct peer_connection) connections;
    struct ARRAY_OF(struct peer_wait) waits; // by thread, then by begin
    struct index_array by_connection;        // waits by connection, then by begin
    struct lifetime_array lives;             // at the captured peers
    struct holdup_array holdups;             // of these
    struct question_hold_array holds;        // of what was asked, before it left
};

struct peers_input {
    const struct application_calls *calls; // on connections that were accepted
    const struct call *peer_calls;         // on those that were made
    size_t peer_call_count;
    const struct connection *connections; // the made ones
    size_t connection_count;
    const json_t *programs; // capture.json: shim.peers, or NULL
    struct join_input join; // of the run: where the captured peers' records are
    const struct applications *applications;
    const struct host_timeline *host; // of the server; NULL: not recorded
};

// The caller frees either way.
int peers_build(const struct peers_input *input, struct peers *out, struct error *err);
void peers_free(struct peers *peers);

// The waits of a thread that begin before end_ns, from the last one back to the first that may
// reach beyond begin_ns: at [*first, *after).
void peers_waits_of(const struct peers *peers, uint32_t thread, int64_t begin_ns, int64_t end_ns,
                    size_t *first, size_t *after);

#endif
