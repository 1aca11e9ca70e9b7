// SPDX-License-Identifier: MIT
//
// Where on the network a message was, and when: between which two hops of Time Capsule (after Suo
// et al., APSys '16) its last byte was on its way to the server, and that of its reply on its way
// back.
//
// Hops are on the server's machine, and on the client's where that is another. Records of the
// latter have its clock, and move with the request whose they are (two_hosts.h). The packets
// themselves relate the two clocks as well, by other stamps: what they say of the offset is held
// against what the requests say.
//
// The hops' records and the requests have in common what identifies a request: the connection's
// addresses and ports, of which both know the hash, and the bytes' place in the stream. The records
// of the SYNs say which sequence number that place is counted from. A datagram has its request's
// number in the place of bytes.
#ifndef ANALYSIS_LIFETIME_HOP_STAYS_H
#define ANALYSIS_LIFETIME_HOP_STAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/lifetime.h"
#include "analysis/timeline/time_source.h"
#include "base/array.h"
#include "base/connection.h"
#include "loadgen/client/sample_log.h"
#include "profiler/bpf/hop_log.h"
#include "profiler/capsule/hop_link.h"
#include "profiler/capsule/hop_spec.h"

// What of the time between two hops a stay is.
enum stay_part {
    STAY_WHOLE,        // all; a queueing discipline's part is not known, where there is one
    STAY_IN_QUEUE,     // in the queueing discipline of the first
    STAY_BEHIND_QUEUE, // from there on
    STAY_PARTS
};

// From one hop that saw it to the next one.
struct hop_stay {
    uint64_t request; // index of the lifetime
    int64_t begin_ns, end_ns;
    uint8_t from, to; // hops
    uint8_t part;     // enum stay_part
    // Cores of the server's machine: that on which the packet was sent to the wire, and that whose
    // receive processing then took it in. HOP_NO_CORE: not known, or something else lies between.
    uint16_t sent_core, taken_core;
};
enum { HOP_NO_CORE = UINT16_MAX };
struct hop_stay_array ARRAY_OF(struct hop_stay);

enum hop_way { WAY_TO_SERVER, WAY_TO_CLIENT, HOP_WAYS };

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

// Requests over UDP without an answer, by which hop saw their datagram, or the reply's, last.
struct hop_loss {
    enum hop_way way;
    uint8_t after, before; // that hop, and the one that follows it; HOPS_MAX: none does
    uint64_t requests;
};
struct hop_loss_array ARRAY_OF(struct hop_loss);

enum { HOP_MACHINES = 2 };

struct hop_stays {
    struct hop_stay_array all;  // by request, in order of time
    uint64_t divided[HOP_WAYS]; // whole requests with a stay on that way
    uint64_t whole;             // all of them
    uint64_t strange;           // records that are none of a hop: damaged
    uint64_t backwards;         // from one machine to the other, by more than the clocks' error
    struct packet_clock clock;
    struct hop_loss_array losses; // by way and hop
    uint64_t losses_unseen;       // of the same: by no hop
};

// A hop as the diagnosis has it.
struct hop_place {
    char name[HOP_NAME_BYTES]; // "to0@switch": without the direction, which the way has
    bool is_ingress;
    // Of the interface and of its other end, each in its namespace, of veth; 0: not known.
    int64_t number, peer;
    char qdisc[HOP_QDISC_BYTES]; // of the interface (profiler/capsule/hop_link.h); "": not known
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

struct hop_stays_input {
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

// Requests over TCP and UDP. The caller frees with hop_stays_free, also after an error: -1, no
// memory.
int hop_stays_find(const struct hop_stays_input *in, struct hop_stays *out);
void hop_stays_free(struct hop_stays *stays);

// Those of a request: the first of *count.
const struct hop_stay *hop_stays_of(const struct hop_stays *stays, uint64_t request, size_t *count);

// The time in which a message is on the network: to the server from its first hop, or from where
// the client's stack ends if that is earlier, to M(n); to the client from server TX to client RX.
// False: that is not known.
bool hop_way_of(const struct hop_stays *stays, const struct lifetime *lives, uint64_t request,
                enum hop_way way, int64_t *begin_ns, int64_t *end_ns);

// The queueing discipline that a packet passes in a stay, "tbf"; "": none, or not known.
const char *hop_stay_qdisc(const struct hop_stay *stay, const struct hop_place *places);

// On which way a stay is.
enum hop_way hop_stay_way(const struct hop_stay *stay, const struct lifetime *life);

#endif
