// SPDX-License-Identifier: MIT
//
// In which order the server's threads served the run's requests, and its cores handed them over:
// who was ahead of whom. Built once per run; asked for every message that is looked at.
//
// A thread serves a request from its receive call, or from the end of the request before, to the
// end of the call that sends the reply. Requests answered by the same call are served together, as
// a group: nobody knows when each one's turn was, so each has an equal part.
#ifndef ANALYSIS_LIFETIME_SERVICE_ORDER_H
#define ANALYSIS_LIFETIME_SERVICE_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/calls.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/timeline/span.h"
#include "base/array.h"

#define NOT_SERVED UINT32_MAX

struct service {
    uint32_t thread;
    uint32_t first, count; // of its requests, in `members`
    int64_t begin_ns, end_ns;
    double running_ns; // how long the thread ran in between
    double before_ns;  // the same, summed over the thread's services before this one
};

struct service_order {
    struct ARRAY_OF(struct service) services; // by thread, then by end
    uint32_t *members;                        // lifetimes, service by service
    uint32_t *service_of;                     // by lifetime, or NOT_SERVED
    uint32_t *handed;                         // lifetimes by R core, then by M(h)
    uint32_t *place_of;                       // by lifetime: where in `handed`, or NOT_SERVED
    size_t handed_count;
};

// host may be NULL: nothing is known to have run. -1: no memory. The caller frees either way.
int service_order_build(struct service_order *order, const struct lifetime *lifetimes, size_t count,
                        const struct application_calls *calls, const struct host_timeline *host);
void service_order_free(struct service_order *order);

// The first service of a thread that ends after `time_ns`; *end: where the thread's services end.
size_t service_order_after(const struct service_order *order, uint32_t thread, int64_t time_ns,
                           size_t *end);

// How long the thread ran within [begin_ns, end_ns), on any core (NO_CORE) or on one.
double thread_running_ns(const struct host_timeline *host, uint32_t thread, uint16_t core,
                         int64_t begin_ns, int64_t end_ns);

#endif
