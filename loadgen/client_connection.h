// SPDX-License-Identifier: MIT
//
// One connection of the load generator: requests go in, bytes go out, replies come back in order,
// and the samples they belong to are filled in on the way. All memory is taken when it is opened.
//
// A request is put into the output buffer (connection_put), leaves with a later connection_flush
// together with its neighbours in one send call, and waits in a slot until its reply comes. Byte
// offsets of both directions count from the connection's start.
#ifndef LOADGEN_CLIENT_CONNECTION_H
#define LOADGEN_CLIENT_CONNECTION_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/connection.h"
#include "base/error.h"
#include "loadgen/client_stamps.h"
#include "loadgen/sample_log.h"
#include "loadgen/server_address.h"
#include "workloads/protocol.h"

// What went on, over all connections.
struct connection_counts {
    uint64_t replies[REPLY_KINDS];
    uint64_t mismatched;     // replies that cannot answer the operation they came for
    uint64_t unexpected;     // replies to nothing
    uint64_t in_flight;      // put and neither answered nor lost
    uint64_t in_flight_max;  // of several threads: the sum of each one's, no less than the truth
    uint64_t broken;         // connections that ended before the run did
    uint64_t rx_missing;     // answered requests whose reply brought no RX stamp
    uint64_t rx_coalesced;   // samples flagged SAMPLE_RX_COALESCED
    uint64_t foreign_errors; // messages on error queues that were no TX stamps
    struct error first_break;
};

struct engine_worker;

// What all connections of one thread share.
struct connection_context {
    const struct protocol *protocol;
    struct sample *samples;
    struct connection_counts *counts;
    struct engine_worker *owner; // whose connections these are
    struct stamp_reader *reader;
    char *receive_buffer;
    size_t receive_bytes;
    bool kernel_stamps;
    bool progress; // set when any connection had something to do
};

struct client_connection {
    int socket_fd; // -1: closed or broken
    uint32_t id;
    struct event *event; // its readiness, edge-triggered
    struct connection_context *context;
    char *out; // bytes [out_begin, out_end) are encoded and not yet taken by the kernel
    size_t out_bytes, out_begin, out_end;
    uint32_t *slots; // slots[n & slot_mask]: the sample of this connection's n-th request
    uint64_t slot_mask;
    uint64_t put, sent, answered; // requests so far; answered <= sent <= put
    uint64_t bytes_put, bytes_sent, bytes_received;
    uint32_t depth; // the most that may be in flight
    bool blocked;   // the socket took less than it was given: wait until it is writable
    bool dirty;     // in its owner's list of connections to flush
    bool listed;    // in its owner's queue of connections with room
    struct reply_parser parser;
    struct stamp_waits waits;
    struct connection entry; // for connections.tlog
};

// Begins to connect, without waiting for the end.
int connection_open(struct client_connection *connection, uint32_t id,
                    const struct server_address *address, struct connection_context *context,
                    uint32_t depth, size_t out_bytes, struct error *err);

// Waits for the end of connecting until deadline_ms (CLOCK_MONOTONIC), turns kernel stamps on
// (context->kernel_stamps) and notes the addresses in `entry`.
int connection_establish(struct client_connection *connection, const struct server_address *address,
                         int64_t deadline_ms, struct error *err);

void connection_close(struct client_connection *connection);

static inline bool connection_is_open(const struct client_connection *connection)
{
    return connection->socket_fd >= 0;
}

// True when another request of that many bytes may be put.
static inline bool connection_has_room(const struct client_connection *connection,
                                       size_t request_bytes)
{
    return connection->socket_fd >= 0 && !connection->blocked &&
           connection->put - connection->answered < connection->depth &&
           connection->out_end + request_bytes <= connection->out_bytes;
}

// Encodes the request of a sample behind what waits already. Only with room for it.
void connection_put(struct client_connection *connection, uint32_t sample,
                    const struct request *request);

// Gives the kernel what waits, in one send call.
void connection_flush(struct client_connection *connection);

// Takes what has arrived. Returns true when there was anything. An end or error of the stream
// breaks the connection: what was in flight is lost.
bool connection_receive(struct client_connection *connection);

// Takes up to one batch of TX stamps. Returns how many messages the error queue held (at most
// STAMP_BATCH).
int connection_take_stamps(struct client_connection *connection, uint64_t now_tsc);

#endif
