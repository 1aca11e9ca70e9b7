// SPDX-License-Identifier: MIT
//
// The state of one connection of the load generator, and what all connections of a thread share.
// The files that work on it, each using only those before it: client_samples records each request's
// outcome in its sample, client_tls encrypts, client_streams speaks HTTP/2, client_opening shakes
// hands and logs in, client_socket opens sockets, handles the end of a connection and opens it
// again, client_datagram sends and receives over UDP, client_connection does so over a stream and
// is what the engine calls.
#ifndef LOADGEN_CLIENT_CLIENT_STATE_H
#define LOADGEN_CLIENT_CLIENT_STATE_H

#include <event2/event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/connection.h"
#include "base/error.h"
#include "loadgen/client/client_stamps.h"
#include "loadgen/client/connection_counts.h"
#include "loadgen/client/sample_log.h"
#include "loadgen/client/server_address.h"
#include "workloads/protocols/login.h"
#include "workloads/protocols/protocol.h"

struct connection_log ARRAY_OF(struct connection);

struct bio_method_st;
struct client_connection;
struct client_streams;
struct client_tls;
struct connection_queue;
struct engine_worker;
struct ssl_ctx_st;
struct workload;

// What is put on one connection over TLS and not encrypted yet, which is to leave as one record.
struct open_record {
    char *bytes; // room of them
    size_t room, count;
    struct client_connection *of; // NULL: there is none
};

// What all connections of one thread share.
struct connection_context {
    const struct protocol *protocol; // the workload's
    const struct workload *workload; // what replies are held against
    size_t carried_bytes;            // of the longest value of a request
    uint64_t value_bytes;            // of every value, where all are alike; else UINT64_MAX
    const struct login_words *login; // what each connection says first; NULL: nothing
    struct event_base *base;         // of the timers
    int epoll_fd;                    // of the sockets, edge-triggered
    struct sample *samples;
    // In bounded memory samples are a ring (loadgen/engine/sample_ring.h): of number n it is n &
    // ring_mask. This thread has those from `final` on, *next is the first it has not put. Else all
    // bits of the mask are set, and final is 0.
    uint64_t ring_mask, final;
    const size_t *next;
    struct sample
        *fills; // samples from here on are of sets that follow misses (struct fill_counts)
    struct connection_counts *counts;
    struct engine_worker *owner; // the thread that these connections belong to
    uint32_t sender;             // the thread's number, for the samples
    // Puts a request into the output buffer and returns its bytes there; NULL: as it is encoded.
    size_t (*put)(struct client_connection *connection, const struct request *request);
    // Takes back a request whose connection ended before it was sent, or answered.
    void (*put_again)(struct engine_worker *owner, uint32_t sample);
    // Notes a connection of which more may be read than it was its turn for: its next edge may
    // never come. Called when a socket is ready, where nobody waits for a server to stop sending.
    void (*read_again)(struct engine_worker *owner, struct client_connection *connection);
    // Notes a connection that is to be opened again with the next round (connection_retry). Not
    // now: of the round under way an event of its old socket may be left.
    void (*open_again)(struct engine_worker *owner, struct client_connection *connection);
    // A reply to the request in that slot is an error: true if the request is put again, at another
    // server, later or in other words, instead of having it for its reply. NULL: it never is.
    bool (*redirect)(struct client_connection *connection, uint64_t slot);
    // The replies to some operations come in parts, or are several values (struct
    // protocol_operation): what is expected is to be said of each.
    bool expects;
    // Of an operation whose reply has parts: how many there are of that request's, if that is not
    // always the same. NULL: it is.
    uint16_t (*parts_of)(const struct engine_worker *owner, const struct sample *sample);
    const struct multiget *multiget; // what requests of many keys ask for; NULL: there are none
    // Where a request stands in the schedule, if some of them were recorded; NULL: none was.
    uint64_t (*place_of)(const struct engine_worker *owner, const struct sample *sample);
    // What is put in front of a request has this sample, behind all others, which nobody reads.
    struct sample *scrap;
    // A get found nothing: it is followed by a set. NULL: it is not.
    void (*fill)(struct engine_worker *owner, const struct sample *get);
    void (*fill_ended)(struct engine_worker *owner, struct sample *fill); // the sample is free
    const atomic_bool *stop;    // the load is to end at once
    struct connection_log log;  // one entry for each connection that was established
    _Atomic uint32_t *last_id;  // ids of the connections of all threads
    uint32_t busy_poll_us;      // SO_BUSY_POLL; 0: left alone
    struct error busy_poll_why; // why it cannot be set
    struct stamp_reader *reader;
    char *receive_buffer; // bytes of replies
    char *wire_buffer;    // bytes that came: the same, or with TLS another of the same size
    size_t receive_bytes;
    struct ssl_ctx_st *tls; // NULL: no TLS (loadgen/client/client_tls.h)
    struct bio_method_st *tls_method;
    bool tls_full_handshakes;  // no connection resumes the session that it had before
    struct open_record record; // with TLS
    struct datagram_reader
        *datagrams;       // over UDP (loadgen/client/client_datagram.h); NULL: a stream
    uint64_t timeout_tsc; // over UDP: how long a reply is waited for
    double ticks_per_us;  // of the TSC
    uint64_t session; // requests of a connection, which then ends and is opened again; 0: it stays
    int64_t reconnect_ms; // how long a connection that ended is tried again; 0: not at all
    uint32_t open;        // connections open at present
    struct live_counters
        *live; // this thread's (loadgen/client/connection_counts.h); NULL: no live view
    struct slow_replies *slow; // of all threads (loadgen/client/slow_replies.h); NULL: nobody asks
    // One send call in so many has a TX stamp; which, is drawn. 0: each has, and always will.
    uint32_t stamps_every;
    uint64_t stamps_random; // state of what draws them
    bool kernel_stamps;
    bool hardware_stamps; // NIC stamps in addition to the kernel's
    bool hardware_tx;     // also of what is sent
    bool progress;        // set when any connection had work to do
};

enum connection_state {
    CONNECTION_CONNECTING,
    CONNECTION_OPENING, // connected, and busy with what comes before the first request
    CONNECTION_OPEN,
    CONNECTION_PAUSING,
    CONNECTION_GONE
};

// Of a request whose reply may come in any order.
enum slot_state {
    SLOT_AWAITS,
    SLOT_SETTLED,
    SLOT_GIVEN_UP, // settled, over UDP: not answered within the time allowed
};

struct client_connection {
    int socket_fd; // -1: none at present
    uint32_t id;   // 0: it was never open
    enum connection_state state;
    const struct server_address *server; // resolved
    struct connection_queue *room;       // where its owner queues it while it has room
    struct event *timer;                 // for the next attempt to open it again
    struct connection_context *context;
    char *out; // bytes [out_begin, out_end) are encoded and not yet taken by the kernel
    size_t out_bytes, out_begin, out_end;
    size_t unsealed; // with TLS: of the output buffer's room, what its open record takes at most
    uint32_t *slots; // slots[n & slot_mask]: the sample of this connection's n-th request
    uint64_t slot_mask;
    uint64_t put, sent, answered; // requests so far; answered <= sent <= put
    uint64_t session;             // so many it gets in all; UINT64_MAX: as many as there are
    uint64_t replies;             // that came; HTTP/2 may refuse requests, which settles them, too
    // Where replies come in any order: which slots' requests are settled, how many of those sent
    // are before the oldest that is not. NULL: in order.
    uint8_t *settled; // enum slot_state
    uint64_t settled_ahead;
    // The most requests from the oldest on that is not settled. In order there is no such bound,
    // but on a connection whose server announced the end of the one before it: what is pipelined
    // behind its last reply has to be sent again, and so it may be no more than was answered.
    uint64_t window;
    uint64_t bytes_put, bytes_sent, bytes_received; // over UDP: datagrams
    uint64_t send_tsc, sent_tsc; // before and after the last send call that took bytes of a stream
    uint32_t depth;              // the most that may be in flight
    bool blocked;                // not open, or the last send call took less than was offered: wait
    bool unended;                // HTTP/2: of the last request not all was said
    bool held;       // no further request at present: HTTP/2 takes none, or its session has had all
    bool dirty;      // in its owner's list of connections to flush
    bool expiry_set; // over UDP: the timer runs
    // What its server has by name is spelled out in the next request that names it; and the one
    // behind the last such request, by number.
    bool spells;
    uint64_t spelled;
    bool listed;            // in its owner's queue of connections with room
    bool unstamped;         // in its owner's queue of those that await TX stamps
    bool unread;            // in its owner's queue of those to be read again without an event
    bool reopening;         // in its owner's queue of those to be opened with the next round
    bool secured;           // the handshake of TLS is done
    unsigned login_answers; // of its login, still awaited
    bool draining;          // closed loop: nothing more is put until all requests are answered
    bool thinks;            // closed loop: and then not until wake_tsc
    uint64_t wake_tsc;
    uint32_t attempts;          // attempts to open it again since it was last useful
    uint64_t ended_tsc;         // when the one before it ended; 0: it is the first
    int64_t down_ms, opened_ms; // CLOCK_MONOTONIC: when it stopped being useful; when it opened
    struct reply_parser parser;
    struct reply_list *list;        // the values of the reply under way, where there are multigets
    struct client_streams *streams; // of HTTP/2; else NULL
    struct client_tls *tls;         // if there is TLS; else NULL
    struct stamp_waits *waits;      // if there are kernel stamps; else NULL
};

static inline bool connection_is_open(const struct client_connection *connection)
{
    return connection->state == CONNECTION_OPEN;
}

// True when another request of that many bytes may be put.
static inline bool connection_has_room(const struct client_connection *connection,
                                       size_t request_bytes)
{
    uint64_t unsettled = connection->put - connection->answered;
    return !connection->blocked && !connection->held &&
           unsettled - connection->settled_ahead < connection->depth &&
           unsettled < connection->window &&
           connection->out_end + connection->unsealed + request_bytes <= connection->out_bytes;
}

#endif
