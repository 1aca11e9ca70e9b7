// SPDX-License-Identifier: MIT
//
// Joins the hops' records of one packet: which way it went, when it was where, and which packets
// were not seen to the end of their way. Does no I/O.
//
// Records of one datagram have one hash. Of a stream, a packet is followed by its last byte: what
// was sent in several packets may travel on in one (GRO), and one packet in several (GSO). The time
// of a packet at a hop is that of the record there in which its last byte lies.
#ifndef PROFILER_CAPSULE_PACKET_JOIN_H
#define PROFILER_CAPSULE_PACKET_JOIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "profiler/bpf/hop_log.h"

enum {
    ROUTES_MAX = 16,
    // A packet that repeats one of so long ago is another.
    PACKET_HORIZON_MS = 2000,
};

struct delay_array ARRAY_OF(double); // ns

// Hops that packets passed one after the other.
struct packet_route {
    size_t hop_count;
    uint8_t hops[HOPS_MAX];        // in that order
    uint64_t packets;              // that took it, whether they were seen at its end or not
    uint64_t complete;             // of them: seen at all of its hops
    uint64_t merged;               // of the complete: in a larger packet at one of the hops
    uint64_t gaps;                 // of them: not seen at a hop, and at a later one
    uint64_t lost_after[HOPS_MAX]; // of them: by the place of the hop that saw them last
    // Of the complete packets, in one order: to each hop from the one before it, and from the first
    // to the last in [0].
    struct delay_array delays[HOPS_MAX];
    // Of the same packets, those seen as they left the queueing discipline behind a hop: how long
    // they were in it.
    struct delay_array queued[HOPS_MAX];
    // Packets that were followed into that discipline, were not seen as they left it, and came to a
    // later hop: divided (GSO), or while the kernel ran no program that could have seen it.
    uint64_t divided[HOPS_MAX], unwatched[HOPS_MAX];
};

struct packet_join {
    struct packet_route routes[ROUTES_MAX]; // the most used first
    size_t route_count;
    uint64_t packets;  // of all routes
    uint64_t rare;     // packets on ways that are too rare to be listed, or too many
    uint64_t outside;  // packets whose first record lies outside the window
    uint64_t pieces;   // parts into which a stream's packets were divided on the way
    uint64_t repeated; // packets like one before, which had not come to its end by then
};

// Sorts the records and joins them. Of packets that entered (passed their first hop) from begin_ns
// up to end_ns. The caller frees *out, also after an error: ERROR_FAILED, out of memory.
int packet_join_records(struct hop_record *records, size_t count, uint64_t begin_ns,
                        uint64_t end_ns, struct packet_join *out, struct error *err);

void packet_join_free(struct packet_join *join);

#endif
