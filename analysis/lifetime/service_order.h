// SPDX-License-Identifier: MIT
//
// For whom the server's threads worked when, and in which order its cores handed requests over: who
// was ahead of whom. Built once per run; asked for every message that is looked at.
//
// A service is one exchange of a connection: what was received up to what answered it, whoever the
// client is. Requests answered by the same call are one service: nobody knows when each one's turn
// was, so each has an equal part. A thread's time is cut into turns at the entries and exits of its
// socket calls; each is for one service, for the server itself, or for nobody in particular.
#ifndef ANALYSIS_LIFETIME_SERVICE_ORDER_H
#define ANALYSIS_LIFETIME_SERVICE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/calls/calls.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/calls/loop_work.h"
#include "analysis/timeline/span.h"
#include "base/array.h"
#include "base/connection.h"

#define NOT_SERVED UINT32_MAX

struct service {
    uint32_t connection;      // the shim's id
    uint32_t first, count;    // of its requests, in `members`; 0: they are not known
    uint32_t client;          // the connection, or one that stands for several of the same client
    bool foreign;             // the connection is none of the load's
    uint8_t command;          // its first one's (base/command_words.h); 0: not known
    uint32_t bytes;           // that were sent
    int64_t begin_ns, end_ns; // of its first call, of its last
    double running_ns;        // how long threads ran for it
};

// `service` of a turn that is for none.
#define TURN_NOBODY  UINT32_MAX       // waiting for work, or between that and the next receive call
#define TURN_SERVER  (UINT32_MAX - 1) // the server's own work
#define TURN_SERVICE (UINT32_MAX - 2) // below this: an index of services

struct turn {
    uint32_t thread;
    uint32_t service;
    int64_t begin_ns, end_ns;
    double running_ns; // how long the thread ran in between
    double before_ns;  // the same, summed over the thread's turns before this one
    uint64_t served;   // requests that ended in these
};

struct service_order {
    struct ARRAY_OF(struct service) services;
    struct ARRAY_OF(struct turn) turns; // by thread, then by time; disjoint
    uint32_t *members;                  // lifetimes, service by service
    uint32_t *service_of;               // by lifetime, or NOT_SERVED
    uint32_t *handed;                   // lifetimes by R core, then by M(h)
    uint32_t *place_of;                 // by lifetime: where in `handed`, or NOT_SERVED
    size_t handed_count;
    uint32_t *service_of_call; // by call: the exchange that it is part of, or NOT_SERVED
    int64_t *own_from; // by call: from when on what its thread did before its next was the server's
                       // own; NO_OWN_WORK: it was not
};

// host may be NULL: nothing is known to have run. -1: no memory. The caller frees either way.
int service_order_build(struct service_order *order, const struct lifetime *lifetimes, size_t count,
                        const struct application_calls *calls, const struct host_timeline *host);
void service_order_free(struct service_order *order);

// A client that connects anew for each command is one: its connections of one or two exchanges get
// the same `client`, the first such connection of its address. connections: the server's. -1: no
// memory.
int service_order_group_clients(struct service_order *order, const struct connection *connections,
                                size_t count);

// The first turn of a thread that ends after `time_ns`; *end: where the thread's turns end.
size_t service_order_after(const struct service_order *order, uint32_t thread, int64_t time_ns,
                           size_t *end);

#endif
