// SPDX-License-Identifier: MIT
//
// What an interface sends through, for as long as a hop is at it: its queueing discipline, in which
// packets wait between the egress hop and the driver, its MTU, and the interface or, of a tap, the
// process at the other end.
// By rtnetlink(7), which tells what is there and what changes.
#ifndef PROFILER_CAPSULE_HOP_LINK_H
#define PROFILER_CAPSULE_HOP_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "profiler/capsule/tap_holder.h"

enum {
    HOP_QDISC_BYTES = 16, // IFNAMSIZ, as the kernel has it
    HOP_UNSEEN_BYTES = 128,
};

struct hop_link {
    int socket; // of the interface's namespace; -1: none
    int interface;
    int peer; // the number of the other end in its namespace, of veth; 0: there is none
    // The root qdisc's kind: "tbf"; "noqueue": none. The last one that there was, other than
    // "noqueue". "": not known.
    char qdisc[HOP_QDISC_BYTES];
    // Why it is not known how long packets of an egress hop are in it; "": it is, or there is none.
    char unseen[HOP_UNSEEN_BYTES];
    uint32_t least_mtu; // the smallest that it has had; UINT32_MAX: not known
    // What is sent through it passes the IP layer once more, to which all that lies behind a packet
    // is the packet's; or did so before its kind was changed.
    bool sends_anew;
    bool missed;              // changes, for which the socket had no room
    bool left;                // it is not in its namespace any more
    struct tap_holder holder; // of a tap: who has its other end, as the hop was attached
};

// Whether packets wait in it.
bool hop_link_queues(const struct hop_link *link);

// In the interface's namespace: reads what is there, and listens for changes. What cannot be read
// is not known.
void hop_link_begin(struct hop_link *link, unsigned interface);

// Takes in what has changed since. To be called every now and then, from any namespace; does not
// wait. Harmless when it has ended.
void hop_link_look(struct hop_link *link);

// Takes in what has changed since, and closes the socket. From any namespace. Harmless when it has
// ended.
void hop_link_end(struct hop_link *link);

#endif
