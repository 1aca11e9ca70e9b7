// SPDX-License-Identifier: MIT
//
// The servers that a watch has seen, each with a name that stays, and what the requests of each
// came to in an interval. A server is known by its program and the place, or process, that it
// had when it was seen first; one that is not asked for a while is still listed.
#ifndef EXPERIMENTS_WATCH_WATCH_SERVERS_H
#define EXPERIMENTS_WATCH_WATCH_SERVERS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/answer_times.h"
#include "analysis/run/run_analysis.h"
#include "base/array.h"
#include "base/error.h"

// What requests came to: all of an interval, or those of one server.
struct watch_requests {
    uint64_t count;     // that were answered
    uint64_t looked_at; // of these, why they took so long
    uint64_t joined;    // of these, with every stamp
    const struct latency_summary *latency;
    const struct diagnosis *diagnosis; // NULL: there is none
    const struct lifetime *slowest;    // NULL: none is whole
};

struct watch_server {
    char name[80]; // "memcached:11211"; "memcached:11211 (12)" where another has that already
    struct application first; // as it was seen first
    // Of the interval:
    uint16_t application; // its number in the analysis; NO_APPLICATION: it was not asked
    struct watch_requests requests;
    struct latency_summary latency;
    struct diagnosis diagnosis; // where there are several servers; else the run's own is used
};

// A zeroed one is empty.
struct watch_servers {
    struct ARRAY_OF(struct watch_server) all; // in the order in which they were seen first
    size_t not_kept; // of the interval, behind the others: more than are remembered
};

// What all requests of the interval came to. answers: where there are any, all that the interval
// had, and the run has an excerpt of them (interval_analysis.h).
struct watch_requests watch_requests_of_all(const struct run_analysis *run,
                                            const struct answer_array *answers);

// Divides an interval's requests among the servers that answered them; run: NULL, there are none.
// What it fills refers to the run. No memory is ERROR_FAILED.
int watch_servers_divide(struct watch_servers *servers, const struct run_analysis *run,
                         const struct answer_array *answers, struct error *err);
void watch_servers_free(struct watch_servers *servers);

#endif
