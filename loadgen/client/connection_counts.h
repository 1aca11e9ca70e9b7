// SPDX-License-Identifier: MIT
//
// What went on over connections, counted: replies by kind, connections that ended and why, what was
// lost with them, stamps that came or did not. Each load thread has its own.
#ifndef LOADGEN_CLIENT_CONNECTION_COUNTS_H
#define LOADGEN_CLIENT_CONNECTION_COUNTS_H

#include <stdint.h>

#include "base/error.h"
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

#endif
