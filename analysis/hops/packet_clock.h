// SPDX-License-Identifier: MIT
//
// The clocks of the client's machine and the server's, related by the packets that hops on both
// saw: by other stamps than the requests relate them with (two_hosts.h), so that what the ones say
// of the offset is held against what the others say.
#ifndef ANALYSIS_HOPS_PACKET_CLOCK_H
#define ANALYSIS_HOPS_PACKET_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/clock_relation.h"
#include "analysis/hops/hop_sightings.h"
#include "base/array.h"

// A request's packets at the hops next to the wire between the machines, each in its own time.
struct packet_exchange {
    struct exchange stamps;
    size_t request;
};
struct packet_exchange_array ARRAY_OF(struct packet_exchange);

// The client's clock and the server's, by the packets of requests that hops on both machines saw
// both ways, in comparison with what the requests' own stamps say. Zeros: there are none.
struct packet_clock {
    uint64_t exchanges;
    int64_t offset_ns;   // server minus client, at the first of them
    double rate;         // by which the server's clock gains on the client's
    double bound_p99_ns; // on the offset; +infinity: not known
    uint64_t compared;   // exchanges at which the requests' offset is known, too
    // Of these: how far the two are from one another.
    double difference_p50_ns, difference_max_ns;
    uint64_t disagreeing; // by more than their bounds together: one of the two is wrong
};

// All zero: there are no exchanges. -1: no memory.
int packet_clock_relate(const struct hops_input *in, const struct packet_exchange_array *exchanges,
                        struct packet_clock *out);

#endif
