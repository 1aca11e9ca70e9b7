// SPDX-License-Identifier: MIT
//
// A run whose client and server are different machines: brings the client's stamps into the host
// time of the server, by what the requests themselves show of both clocks (clock_relation.h). All
// client stamps of a request move by the same amount, so that its latency stays what the client's
// clock says.
#ifndef ANALYSIS_LIFETIME_TWO_HOSTS_H
#define ANALYSIS_LIFETIME_TWO_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/lifetime.h"
#include "base/error.h"

enum { ROUND_TRIPS = 4 };
extern const char *const round_trip_quantile_names[ROUND_TRIPS]; // "p50" ... "max"

struct two_hosts {
    bool apart;         // client and server have clocks of their own; else all below is 0
    uint64_t exchanges; // requests stamped by both
    // bound_p99_ns is beyond the median round trip, which says nothing of either way: the network
    // is one stage, both ways, of all requests.
    bool both_ways;
    uint64_t unknown;        // else: requests whose offset is not known, for which alone it is so
    size_t gaps;             // stretches of time these lie in
    int64_t offset_ns;       // server minus client, at the first exchange
    double rate;             // by which the server's clock gains on the client's
    double bound_p50_ns;     // on the offset, of half of the exchanges
    double bound_p99_ns;     // of 99 % of them; +infinity where it is not known
    uint64_t negative_trips; // round trips below zero by more than the clocks' error
    // On the network both ways, the client's clock less the server's: needs no relation.
    double round_trip_ns[ROUND_TRIPS];
};

// lives: with the client's stamps in the client's host time, the server's in the server's. Moves
// the former and fills hosts_error_ns. stamp_error_ns: of a client and a server stamp together.
// Without a single exchange nothing moves. Only lack of memory fails.
int two_hosts_relate(struct lifetime *lives, size_t count, double stamp_error_ns,
                     struct two_hosts *out, struct error *err);

#endif
