// SPDX-License-Identifier: MIT
//
// Counts of what happened on connections: replies by kind, connections that ended and why, what was
// lost with them, stamps that came or did not. Each load thread has its own.
#ifndef LOADGEN_CLIENT_CONNECTION_COUNTS_H
#define LOADGEN_CLIENT_CONNECTION_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/histogram.h"
#include "workloads/protocols/protocol.h"

// Why a connection ended, and thus why its requests in flight are lost.
enum connection_loss {
    LOSS_CLOSED,     // the server closed it, in order
    LOSS_RESET,      // the server or its kernel aborted it (RST)
    LOSS_MALFORMED,  // a reply broke the protocol: the connection was closed by this client (not
                     // over UDP)
    LOSS_UNANSWERED, // UDP, which has no connection to end: no whole reply within the time allowed
    LOSS_OTHER,      // any other socket error
    LOSS_REASONS,
};
extern const char *const connection_loss_names[LOSS_REASONS]; // "closed", ..., for JSON

// How often something happened, and how long it took.
struct timed_count {
    uint64_t count, sum_ns, max_ns;
};

static inline void timed_count_add(struct timed_count *all, const struct timed_count *more)
{
    all->count += more->count;
    all->sum_ns += more->sum_ns;
    if (more->max_ns > all->max_ns)
        all->max_ns = more->max_ns;
}

static inline void timed_count_note(struct timed_count *all, uint64_t ns)
{
    timed_count_add(all, &(struct timed_count){1, ns, ns});
}

// Of a workload that reads through: the sets that followed gets which had found nothing. They are
// no requests of the schedule, and in none of the other counts but in_flight.
struct fill_counts {
    uint64_t begun;
    struct timed_count stored; // from the reply to the get to that of the set
    uint64_t refused;          // not stored, without an error
    uint64_t failed;           // answered with an error, or with another's answer
    uint64_t lost;             // put on a connection that ended
    uint64_t left_out;         // not begun: too many were under way
};

// Those that came to no end: the load ended before.
static inline uint64_t fill_counts_unfinished(const struct fill_counts *fills)
{
    return fills->begun - fills->stored.count - fills->refused - fills->failed - fills->lost;
}

// Requests of many keys whose replies were right.
struct multiget_counts {
    uint64_t answered;
    uint64_t keys, missing; // that they asked for; of these, not there
};

// Requests that were to wait for others (engine_settings.batch_ns), by the calls they left in.
struct batch_counts {
    uint64_t calls;
    uint64_t largest;          // requests of one call
    struct timed_count waited; // of each request, from when it was due to when its batch was
};

// Connections that ended because they had had as many requests as a session has, and how long each
// that was opened again took: until its first request could be sent.
struct session_counts {
    uint64_t ended;
    struct timed_count opening;
};

// Of a load whose keys are on several servers (loadgen/client/node_map.h): what these sent
// elsewhere.
struct redirection_counts {
    uint64_t moved, asked; // requests put again, at the node that MOVED or ASK named
    uint64_t retried;      // put again after a pause: TRYAGAIN, CLUSTERDOWN, READONLY, ...
    uint64_t unknown;      // of those moved and asked: to a node that was not known yet
    uint64_t given_up;     // redirected too often, or tried for too long: the error is their reply
    uint64_t unreachable;  // requests never sent: at the end no connection to their node was open
    uint64_t connections;  // opened to nodes that appeared meanwhile
    // A sentinel's masters that took over, as the first thread saw it: from the first sign (a
    // connection that ended, or an answer of somebody who is no master) to the new one's first
    // answer; and when that of the first of them was. 0: there was none.
    struct timed_count failovers;
    uint64_t first_failover_tsc;
    uint64_t map_reads, map_failures; // how often who has what was asked anew, and nobody answered
};

// Counts over all connections.
struct connection_counts {
    uint64_t replies[REPLY_KINDS];
    uint64_t mismatched;    // replies of a kind that cannot answer their request's operation
    uint64_t wrong_values;  // values of another size, or of another key, than the request's
    uint64_t unexpected;    // replies that no request asked for
    uint64_t in_flight;     // put and neither answered nor lost
    uint64_t in_flight_max; // over several threads: the sum of their maxima, an upper bound
    uint64_t ended;         // connections that ended before the load did
    uint64_t broken;        // of those: other than closed by the server with nothing left to answer
    char broken_at[64];     // the server of the first of them, as it is written
    uint64_t broken_elsewhere;   // 0: all of them were that server's
    uint64_t lost[LOSS_REASONS]; // requests that were in flight on them
    uint64_t moved;              // requests put but not sent, which moved to another connection
    // requests sent after the last answered one, which were sent again
    uint64_t repeated;
    uint64_t spelled_out;        // sent again, since their server did not know what they named
    uint64_t reconnects;         // connections opened again
    uint64_t reconnects_failed;  // failed attempts to open one again
    uint64_t portless;           // attempts to open one for which no local port was left
    uint64_t given_up;           // connections given up
    uint64_t first_end_tsc;      // when the first of `ended` happened; 0: none
    uint64_t last_reconnect_tsc; // when the last of `reconnects` succeeded; 0: none
    // HTTP/2: connections on which at the end the server held back what was still to be said, by
    // its windows or by how many streams it allows
    uint64_t windows_shut, streams_spent, ends_awaited;
    uint64_t rx_missing;            // answered requests whose reply brought no RX stamp
    uint64_t rx_coalesced;          // samples flagged SAMPLE_RX_COALESCED
    uint64_t foreign_errors;        // messages on error queues that were no TX stamps
    uint64_t datagrams_refused;     // UDP: how often the kernel reported that nobody listens
    uint64_t datagrams_malformed;   // datagrams that are not part of a reply
    uint64_t datagrams_surplus;     // duplicates, late ones, and answers to no request
    uint64_t datagrams_late;        // of these: replies to requests that were given up before
    uint64_t datagrams_overrun;     // that the kernel threw away at this client's sockets: full
    uint64_t datagrams_unassembled; // parts of replies that made room for later ones
    uint64_t stamps_unknown;        // TX stamps that belong to no known send call
    uint64_t stamps_late;   // that came when a request of theirs had no use for them any more
    uint64_t stamps_double; // of bytes that had one: they were sent again
    // TX stamps received from the NIC and from the kernel.
    uint64_t tx_hardware, tx_software;
    struct fill_counts fills;
    struct multiget_counts multigets;
    struct batch_counts batches;
    struct session_counts sessions;
    struct redirection_counts redirections;
    // TLS handshakes that were completed, from the connected socket to the last of them: whole
    // ones, and those of a session there had been.
    struct timed_count handshakes, resumed;
    char tls_suite[64];                    // "TLSv1.3, TLS_AES_256_GCM_SHA384"; empty: no TLS
    struct error first_break, first_fault; // what ended a connection; what a wrong reply said
    struct error first_failure;            // of reconnects_failed
    struct error first_refusal; // why one that was connected again was not open for requests
};

// Adds the counts of other connections, or of another time, to `all`. in_flight_max is the
// exception: maxima of threads add up, those of successive times do not.
void connection_counts_add(struct connection_counts *all, const struct connection_counts *more);

// --- the live view -------------------------------------------------------------------------------
// The counters that a load thread keeps for the live view (loadgen/engine/live_view.h). Each thread
// writes only its own: plain stores that other threads may read (relaxed atomics), one histogram
// slot and a few words per reply, no lock and no system call.

struct live_counters {
    uint64_t tsc_khz; // ns per tick of the histogram; written before the first reply
    uint64_t in_flight, answered, errors;
    // The schedule's debt: by how much the oldest request is late that is due and not sent although
    // a connection has room (ticks); and of the time so far, how much the thread had nothing to do.
    uint64_t behind, idle;
    uint64_t asleep;     // part of idle
    uint64_t core_clock; // what the thread had of its core (clockid_t); 0: it is not in the load
    struct histogram latency; // latency from the intended time, in ticks
} __attribute__((aligned(64)));

static inline void live_set(uint64_t *counter, uint64_t value)
{
    __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

static inline void live_note_reply(struct live_counters *live, uint64_t latency_ticks, bool error,
                                   uint64_t in_flight)
{
    histogram_record(&live->latency, latency_ticks);
    histogram_add(&live->answered, 1);
    histogram_add(&live->errors, error);
    live_set(&live->in_flight, in_flight);
}

#endif
