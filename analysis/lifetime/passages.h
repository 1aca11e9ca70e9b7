// SPDX-License-Identifier: MIT
//
// The server's records as passages, in piles by kind and connection (streams.h): what the join goes
// along.
#ifndef ANALYSIS_LIFETIME_PASSAGES_H
#define ANALYSIS_LIFETIME_PASSAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/calls/calls.h"
#include "analysis/calls/streams.h"
#include "analysis/timeline/time_source.h"
#include "base/connection.h"
#include "profiler/bpf/event_log.h"

// The server's records, by what stamp they make.
enum passage_kind {
    SEGMENTS,
    HANDOFFS,
    TRANSMITS,
    ARRIVALS,          // go before segments: the link was virtual
    NIC_STAMPS,        // go before both: when the NIC had it
    TAKES,             // stand in for hand-offs that were not delivered
    RESENDS_TO_SERVER, // and what holds messages up (holdups.h)
    RESENDS_TO_CLIENT,
    HELDS,
    QUEUES,
    CLIENT_QUEUES,
    LOSSES_TO_SERVER, // segments that the kernel threw away; their end: the low 32 bits of it
    LOSSES_TO_CLIENT,
    DROPS, // datagrams that the kernel threw away
    EVENT_PASSAGES,
    RECEIVES = EVENT_PASSAGES,
    SENDS,
    PASSAGE_KINDS
};

struct server_records {
    const struct event *events; // NULL: none
    size_t event_count;
    const struct connection *sockets;
    size_t socket_count;
    const struct application_calls *calls; // NULL: none
    const struct connection *connections;  // of the calls
    size_t connection_count;
    struct time_source clock;
};

// Piles the events by socket and the calls by the shim's connection, each in order of time, or,
// over UDP, of number. Of logs that are not there the piles stay empty. *nic_stamps: there are any.
// -1 when memory runs out; the caller frees the piles (piles_free) either way.
int passages_build(const struct server_records *in, struct piles out[PASSAGE_KINDS],
                   bool *nic_stamps);

#endif
