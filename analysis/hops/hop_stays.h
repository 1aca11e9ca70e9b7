// SPDX-License-Identifier: MIT
//
// Where on the network a message was, and when: between which two hops its last byte was on its way
// to the server, and that of its reply on its way back (hop_sightings.h).
#ifndef ANALYSIS_HOPS_HOP_STAYS_H
#define ANALYSIS_HOPS_HOP_STAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/hops/hop_sightings.h"
#include "analysis/hops/packet_clock.h"
#include "base/array.h"

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
    // Whose virtual machine lies between: the hop at its tap, or HOPS_MAX; and by its own number
    // the core that had the packet there, HOP_NO_CORE: not known.
    uint8_t tap;
    uint16_t machine_core;
};
enum { HOP_NO_CORE = UINT16_MAX };
struct hop_stay_array ARRAY_OF(struct hop_stay);

// By way: how many messages were at a hop next after another one.
struct hop_order {
    uint64_t followed[HOP_WAYS][HOPS_MAX][HOPS_MAX];
};

struct hop_stays {
    struct hop_stay_array all;  // by request, in order of time
    uint64_t divided[HOP_WAYS]; // whole requests with a stay on that way
    uint64_t whole;             // all of them
    uint64_t backwards;         // from one machine to the other, by more than the clocks' error
    struct packet_clock clock;
    struct hop_order order;
};

// The caller frees with hop_stays_free, also after an error: -1, no memory.
int hop_stays_find(const struct hop_sightings *sightings, struct hop_stays *out);
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
