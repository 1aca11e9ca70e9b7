// SPDX-License-Identifier: MIT
//
// Requests over UDP. A server has one socket for all its clients, and no stream: its records name
// each datagram by its client and the low 16 bits of the request's number (base/datagram_key.h).
// Here each client becomes a connection of its own, and each record gets the whole number as its
// offset: request n is [n, n + 1) in both directions, as the client's samples have it. So all that
// follows is TCP's way, but that records of a connection may be lost, doubled and out of order.
#ifndef ANALYSIS_LIFETIME_DATAGRAMS_H
#define ANALYSIS_LIFETIME_DATAGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/time_source.h"
#include "base/array.h"
#include "base/connection.h"
#include "loadgen/client/sample_log.h"
#include "profiler/bpf/event_log.h"
#include "shim/message_log.h"

struct datagrams_input {
    const struct sample *samples;
    size_t sample_count;
    const struct connection *clients; // the samples'
    size_t client_count;
    const struct event *events; // NULL: none
    size_t event_count;
    const struct connection *sockets;
    size_t socket_count;
    const struct call *calls; // the shim's; NULL: none
    size_t call_count;
    const struct connection *connections; // the shim's
    size_t connection_count;
    struct time_source clock; // of the server's host
    // Of the client's host; NULL: the same. Else nothing relates the two yet, and the first
    // datagram that is on record of a client is taken to be among its first 65536.
    const struct time_source *client_clock;
};

// The server's logs, with each client of a UDP socket as a connection.
struct datagrams {
    bool any; // else all is empty: there are none, and the logs stay as they are
    struct ARRAY_OF(struct event) events;
    struct ARRAY_OF(struct connection) sockets;
    struct ARRAY_OF(struct call) calls;
    struct ARRAY_OF(struct connection) connections;
    uint64_t strangers; // records of datagrams that none of the samples' connections sent
};

// -1 when memory runs out. The caller frees *out either way.
int datagrams_resolve(const struct datagrams_input *in, struct datagrams *out);
void datagrams_free(struct datagrams *datagrams);

#endif
