// SPDX-License-Identifier: MIT
//
// When TCP or what is below it held a message's bytes back, and why: bytes that were lost and sent
// again (the message's own, or earlier ones of its connection, behind which it had to wait), and
// what kept a reply in the send queue after the send call or in a queueing discipline.
#ifndef ANALYSIS_LIFETIME_HOLDUPS_H
#define ANALYSIS_LIFETIME_HOLDUPS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/calls/calls.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/calls/streams.h"
#include "analysis/timeline/time_source.h"
#include "base/array.h"
#include "loadgen/client/sample_log.h"
#include "profiler/bpf/event_log.h"

enum holdup_kind {
#define HOLDUP(NAME, means) HOLDUP_##NAME,
#include "analysis/lifetime/lifetimes.tbl.h"
    HOLDUP_KINDS
};

struct holdup {
    uint64_t request; // index of the lifetime
    int64_t begin_ns, end_ns;
    uint8_t kind; // enum holdup_kind
    uint8_t by;   // HOLDUP_QUEUE, HOLDUP_CLIENT_QUEUE: enum event_queue; what was sent again: what
                  // had thrown it away before (enum event_loss), 0: nobody saw it
};
// By request, in order of time; those of a request do not overlap.
struct holdup_array ARRAY_OF(struct holdup);

// Those of a request: the first of *count.
const struct holdup *holdups_of(const struct holdup_array *all, uint64_t request, size_t *count);

const char *event_queue_name(unsigned queue); // "tbf", as `tc` calls it
const char *event_loss_name(unsigned loss);   // "a firewall (NETFILTER_DROP)"

// What they are found in: the records of the join, in piles by connection. Requests by the client's
// connections, the other piles by the server's sockets.
struct holdup_sources {
    const struct sample *samples;
    struct lifetime *lives;
    const struct application_calls *calls;  // NULL: no shim
    const struct event *events;             // NULL: no capture
    struct time_source clock;               // of the server's host
    const uint32_t *socket_of;              // by the client's connection, or NO_CONNECTION
    const struct piles *requests, *replies; // in the order sent; in the order of their replies
    const struct piles *segments, *arrivals, *handoffs, *resends_to_server, *resends_to_client,
        *helds, *queues, *client_queues, *losses_to_server, *losses_to_client;
};

// Finds them all, and puts M(n) right where what arrived first did not get through. To be called
// when the stamps are related to one another, before stages are made of them. -1: no memory.
int holdups_find(const struct holdup_sources *from, struct holdup_array *out);

#endif
