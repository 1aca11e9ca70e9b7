// SPDX-License-Identifier: MIT
//
// One connection of the load generator: requests go in, bytes go out, replies come back in order,
// and the samples they belong to are filled in on the way. All memory is taken when it is opened.
//
// A request is put into the output buffer (connection_put), leaves with a later connection_flush
// together with its neighbours in one send call, and waits in a slot until its reply comes. Byte
// offsets of both directions count from the connection's start.
//
// When the stream ends, or is no longer what the protocol allows, what was in flight is lost, what
// was only put goes to another connection, and the connection is opened again from the event loop
// (loadgen/client/client_reconnect.c), after growing pauses, until it has failed for reconnect_ms.
// Each such reconnect is a connection of its own: a new id, a new entry for connections.tlog,
// offsets and request numbers from 0.
#ifndef LOADGEN_CLIENT_CONNECTION_H
#define LOADGEN_CLIENT_CONNECTION_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/connection.h"
#include "base/error.h"
#include "loadgen/client/client_stamps.h"
#include "loadgen/client/sample_log.h"
#include "loadgen/client/server_address.h"
#include "workloads/protocol.h"

// Why a connection ended, and thus why the requests in flight on it are lost.
enum connection_loss {
    LOSS_CLOSED,     // the server closed it, in order
    LOSS_RESET,      // the server, or its kernel, threw it away (RST)
    LOSS_MALFORMED,  // replies were not what the protocol allows: closed from here
    LOSS_UNANSWERED, // UDP, where no connection ends: no whole reply within the time allowed
    LOSS_OTHER,      // another error of the socket
    LOSS_REASONS,
};
extern const char *const connection_loss_names[LOSS_REASONS]; // "closed", ..., for JSON

// What went on, over all connections.
struct connection_counts {
    uint64_t replies[REPLY_KINDS];
    uint64_t mismatched;    // replies that cannot answer the operation they came for
    uint64_t unexpected;    // replies to nothing
    uint64_t in_flight;     // put and neither answered nor lost
    uint64_t in_flight_max; // of several threads: the sum of each one's, no less than the truth
    uint64_t ended;         // connections that ended before the run did
    uint64_t broken;        // of those: not closed by the server with nothing left to answer
    uint64_t lost[LOSS_REASONS];    // requests that were in flight on them
    uint64_t moved;                 // requests put but not sent: put again, on another
    uint64_t repeated;              // requests sent behind the last that was answered: sent again
    uint64_t reconnects;            // connections opened again
    uint64_t reconnects_failed;     // attempts at that which failed
    uint64_t given_up;              // connections not tried again any more
    uint64_t first_end_tsc;         // when the first of `ended` did; 0: none
    uint64_t last_reconnect_tsc;    // when the last of `reconnects` was done; 0: none
    uint64_t rx_missing;            // answered requests whose reply brought no RX stamp
    uint64_t rx_coalesced;          // samples flagged SAMPLE_RX_COALESCED
    uint64_t foreign_errors;        // messages on error queues that were no TX stamps
    uint64_t datagrams_refused;     // UDP: how often it was told that nobody listens
    uint64_t datagrams_malformed;   // not part of a reply
    uint64_t datagrams_surplus;     // come before, or too late, or answer to nothing
    uint64_t datagrams_unassembled; // of replies for which there was no room
    uint64_t stamps_unknown; // TX stamps of connections since ended that belong to no request
    // TX stamps that came, of the NIC and of the kernel.
    uint64_t tx_hardware, tx_software;
    struct error first_break;
};

// Adds what went on elsewhere, on other connections or at another time, to `all`; but for
// in_flight_max: those of threads add up, those of one time after another do not.
void connection_counts_add(struct connection_counts *all, const struct connection_counts *more);

struct connection_log ARRAY_OF(struct connection);

struct engine_worker;

// What all connections of one thread share.
struct connection_context {
    const struct protocol *protocol;
    const struct server_address *server;
    struct event_base *base;
    struct sample *samples;
    struct connection_counts *counts;
    struct engine_worker *owner; // whose connections these are
    uint32_t sender;             // its number, for the samples
    event_callback_fn on_ready;  // its answer to events: calls connection_ready
    // Takes back a request whose connection ended before it could be sent, or answered.
    void (*put_again)(struct engine_worker *owner, uint32_t sample);
    struct connection_log log;  // an entry for each connection that came about
    _Atomic uint32_t *last_id;  // of the connections of all threads
    uint32_t busy_poll_us;      // SO_BUSY_POLL; 0: left alone
    struct error busy_poll_why; // why that cannot be had
    struct stamp_reader *reader;
    char *receive_buffer;
    size_t receive_bytes;
    struct datagram_reader
        *datagrams;       // over UDP (loadgen/client/client_datagram.h); NULL: a stream
    uint64_t timeout_tsc; // over UDP: how long a reply is waited for
    double ticks_per_us;  // of the TSC
    int64_t reconnect_ms; // how long a connection that ended is tried again; 0: not at all
    uint32_t open;        // connections that are open right now
    struct live_counters
        *live; // of this thread (loadgen/client/live_counters.h); NULL: nobody looks
    bool kernel_stamps;
    bool hardware_stamps; // of the NIC, beside the kernel's
    bool progress;        // set when any connection had something to do
};

enum connection_state {
    CONNECTION_CONNECTING,
    CONNECTION_OPEN,
    CONNECTION_PAUSING,
    CONNECTION_GONE
};

struct client_connection {
    int socket_fd; // -1: none at present
    uint32_t id;
    enum connection_state state;
    struct event *event; // its readiness, edge-triggered
    struct event *timer; // for the next attempt to open it again
    struct connection_context *context;
    char *out; // bytes [out_begin, out_end) are encoded and not yet taken by the kernel
    size_t out_bytes, out_begin, out_end;
    uint32_t *slots; // slots[n & slot_mask]: the sample of this connection's n-th request
    uint64_t slot_mask;
    uint64_t put, sent, answered; // requests so far; answered <= sent <= put
    uint64_t settled_ahead;       // over UDP, of those sent: settled before the oldest that is not
    uint64_t window; // the most requests from that one on; over UDP alone it can be reached
    uint64_t bytes_put, bytes_sent, bytes_received; // over UDP: datagrams
    uint32_t depth;                                 // the most that may be in flight
    bool blocked;               // not open, or the socket took less than it was given: wait
    bool dirty;                 // in its owner's list of connections to flush
    bool expiry_set;            // over UDP: the timer runs
    bool listed;                // in its owner's queue of connections with room
    bool unstamped;             // in its owner's queue of those that await TX stamps
    bool draining;              // of a closed loop: all is to be answered before more is put
    uint32_t attempts;          // to open it again, since it last was of use
    int64_t down_ms, opened_ms; // CLOCK_MONOTONIC: when it ceased to be of use; when it opened
    struct reply_parser parser;
    struct stamp_waits *waits; // with kernel stamps; else NULL
};

// Takes the memory of a connection and begins to connect, without waiting for the end.
int connection_open(struct client_connection *connection, uint32_t id,
                    struct connection_context *context, uint32_t depth, size_t out_bytes,
                    struct error *err);

// Waits for the end of connecting until deadline_ms (CLOCK_MONOTONIC). From then on its events, and
// its being opened again, are the event loop's.
int connection_establish(struct client_connection *connection, int64_t deadline_ms,
                         struct error *err);

void connection_close(struct client_connection *connection);

// Does what an event of its socket asks for.
void connection_ready(struct client_connection *connection);

static inline bool connection_is_open(const struct client_connection *connection)
{
    return connection->state == CONNECTION_OPEN;
}

// True when another request of that many bytes may be put.
static inline bool connection_has_room(const struct client_connection *connection,
                                       size_t request_bytes)
{
    uint64_t unsettled = connection->put - connection->answered;
    return !connection->blocked && unsettled - connection->settled_ahead < connection->depth &&
           unsettled < connection->window &&
           connection->out_end + request_bytes <= connection->out_bytes;
}

// Encodes the request of a sample behind what waits already. Only with room for it.
void connection_put(struct client_connection *connection, uint32_t sample,
                    const struct request *request);

// Gives the kernel what waits, in one send call.
void connection_flush(struct client_connection *connection);

// Takes what has arrived. Returns true when there was anything. An end or error of the stream, or
// a reply that is not what the protocol allows, ends the connection: what was in flight is lost.
bool connection_receive(struct client_connection *connection);

// Takes up to one batch of TX stamps. Returns how many messages the error queue held (at most
// STAMP_BATCH).
int connection_take_stamps(struct client_connection *connection, uint64_t now_tsc);

#endif
