// SPDX-License-Identifier: MIT
//
// How the host time of a server relates to that of a client on another machine, from nothing but
// the requests themselves: a request came no earlier than it left, and its reply was back no
// earlier than it was sent. Each request thus bounds the offset of the two clocks from above and
// from below, and the envelopes of these bounds over a while bound it far more closely than any one
// of them.
//
// Around each knot the offset is taken as a line; of all lines between the envelopes the extreme
// values at the knot are the bound there. Source: V. Paxson, "On calibrating measurements of packet
// transit times" (SIGMETRICS 1998); S. Moon, P. Skelly and D. Towsley, "Estimation and removal of
// clock skew from network delay measurements" (INFOCOM 1999), where it is a linear program; L.
// Zhang, Z. Liu and C. Xia, "Clock synchronization algorithms for network measurements" (INFOCOM
// 2002), who solve it by the convex hulls of the delays.
//
// What holds: the true offset lies within the bound as long as (1) no stamp is wrong by more than
// stamp_error_ns, (2) both clocks are raw ones, whose relative rate stays within
// CLOCK_RELATION_RATE and changes by at most CLOCK_RELATION_WANDER a second, and (3) a step of
// either clock, which raw clocks do not make but a paused or migrated machine may, is larger than
// the shortest round trip: such a one is found, and the offset around it is said to be unknown. No
// bound can be smaller than half of what the fastest request and reply spent on the network: how
// that is shared between the two ways cannot be known from stamps at both ends.
#ifndef ANALYSIS_LIFETIME_CLOCK_RELATION_H
#define ANALYSIS_LIFETIME_CLOCK_RELATION_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CLOCK_RELATION_RATE   1e-3 // twice what two clocks may differ that NTP still disciplines
#define CLOCK_RELATION_WANDER 1e-7 // a second: 0.1 ppm, a crystal that warms by degrees each second

// The four stamps of one request, each in the host time of its host (ns).
struct exchange {
    int64_t left_ns;    // it left the client
    int64_t came_ns;    // it reached the server
    int64_t replied_ns; // the reply left the server
    int64_t back_ns;    // it reached the client
};

// Server minus client, at an instant.
struct clock_offset {
    int64_t ns;
    double bound_ns; // the truth lies no further away; +infinity: not known
};

struct clock_relation; // opaque; immutable once built

// Any order. The caller frees with clock_relation_free. Memory and time are in proportion to the
// exchanges, however far apart they are. stamp_error_ns: of one client stamp and one
// server stamp together. ERROR_INPUT when there is no exchange at all.
int clock_relation_build(const struct exchange *exchanges, size_t count, double stamp_error_ns,
                         struct clock_relation **out, struct error *err);
void clock_relation_free(struct clock_relation *relation);

// The offset when the client's clock showed that. Before the first exchange and after the last the
// bound widens as the rate allows. O(log knots).
struct clock_offset clock_relation_at(const struct clock_relation *relation, int64_t client_ns);

// How fast the server's clock gains on the client's, from the first known knot to the last; 0 with
// fewer than two.
double clock_relation_rate(const struct clock_relation *relation);

// Stretches between two knots in which the offset is not known, for want of requests or for a step.
size_t clock_relation_gaps(const struct clock_relation *relation);

#endif
