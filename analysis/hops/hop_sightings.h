// SPDX-License-Identifier: MIT
//
// When the hops of Time Capsule (after Suo et al., APSys '16) saw a message's last byte on its way
// to the server, and that of its reply on its way back.
//
// Hops are on the server's machine, and on the client's where that is another. Records of the
// latter have its clock, and move with the request whose they are (two_hosts.h).
//
// The hops' records and the requests have in common what identifies a request: the connection's
// addresses and ports, of which both know the hash, and the bytes' place in the stream. The records
// of the SYNs say which sequence number that place is counted from. A datagram has its request's
// number in the place of bytes.
#ifndef ANALYSIS_HOPS_HOP_SIGHTINGS_H
#define ANALYSIS_HOPS_HOP_SIGHTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/lifetime.h"
#include "analysis/calls/streams.h"
#include "analysis/timeline/time_source.h"
#include "base/array.h"
#include "base/connection.h"
#include "loadgen/client/sample_log.h"
#include "profiler/bpf/hop_log.h"
#include "profiler/capsule/hop_link.h"
#include "profiler/capsule/hop_spec.h"

enum hop_way { WAY_TO_SERVER, WAY_TO_CLIENT, HOP_WAYS };
enum { HOP_MACHINES = 2 };

// A hop as the diagnosis has it.
struct hop_place {
    char name[HOP_NAME_BYTES]; // "to0@switch": without the direction, which the way has
    bool is_ingress;
    // Of the interface and of its other end, each in its namespace, of veth; 0: not known.
    int64_t number, peer;
    char qdisc[HOP_QDISC_BYTES]; // of the interface (profiler/capsule/hop_link.h); "": not known
    bool at_client;              // on the client's machine, where that is another
    struct tap_holder holder;    // of a tap
};

// What the hops of one machine recorded.
struct hop_machine {
    const struct hop_record *records; // in order of time
    size_t record_count;
    size_t first_hop, hop_count; // their numbers, in all of the run's
    uint64_t flow_key;           // of packet_flow()
    // One packet in so many was recorded, where hops only look; else 1, and what was not has no
    // record.
    uint32_t one_in;
    struct time_source clock;
    bool is_client; // it has the client's clock, which is another than the server's
};

struct hops_input {
    const struct hop_machine *machines; // in the order of their hops; HOP_MACHINES at most
    size_t machine_count;
    size_t hop_count;               // of all machines
    const struct hop_place *places; // theirs
    const struct sample *samples;
    const struct connection *connections; // the client's
    size_t connection_count;
    const struct lifetime *lives; // with stages, one per sample
    size_t life_count;
};

// One direction of a connection, from its SYN on, as a machine saw it.
struct hop_stream {
    size_t machine;
    uint64_t flow;
    int64_t opened_ns; // in that machine's time
    uint32_t base;     // number of the first byte
    uint32_t pile;     // of its first hop: of a connection of the client's; NO_CONNECTION: of none
    uint64_t last;     // how far its records went
};
struct hop_stream_array ARRAY_OF(struct hop_stream);

struct hop_sightings {
    const struct hops_input *in;
    uint64_t strange; // records that are none of a hop: damaged
    // This file's own.
    struct hop_stream_array streams; // by machine and flow, in order of time
    struct ARRAY_OF(struct passage) passages;
    struct piles piles;  // by connection, way and hop; `record` is a hop record's index
    uint32_t *stream_of; // by machine, connection and way: of streams, or NO_CONNECTION
};

// One message at one hop.
struct hop_sighting {
    int64_t time_ns;
    const struct hop_record *record;
    uint8_t hop;
};

// Requests over TCP and UDP. *in stays the caller's and lives as long. The caller frees with
// hop_sightings_free, also after an error: -1, no memory.
int hop_sightings_build(const struct hops_input *in, struct hop_sightings *out);
void hop_sightings_free(struct hop_sightings *s);

// The hops that saw a whole request, or its reply: how many, in the order of the way, in the
// server's time.
size_t hop_sightings_of(const struct hop_sightings *s, size_t request, enum hop_way way,
                        struct hop_sighting out[HOPS_MAX]);

// What a hop saw of a connection of the client's, whoever's message that was.
struct hop_passage {
    uint32_t connection;
    enum hop_way way;
    uint64_t end;             // of its bytes in the stream; of a datagram its number and one
    struct hop_sighting seen; // in its machine's time
};
// i < s->passages.count
struct hop_passage hop_passage_at(const struct hop_sightings *s, size_t i);

const struct hop_machine *hop_machine_of(const struct hops_input *in, size_t hop);

// Whether b was passed after a. Between machines it is the way that says so, not their clocks.
bool hop_sighted_later(const struct hops_input *in, enum hop_way way, const struct hop_sighting *a,
                       const struct hop_sighting *b);

// Within what time a message was on a way: from its begin, to its end, and until then the hop at
// the receiver may have seen it, which comes behind the stamp there.
struct hop_way_time {
    int64_t from_ns, to_ns, until_ns;
};
struct hop_way_time hop_way_time_of(const struct lifetime *life, enum hop_way way);

#endif
