// SPDX-License-Identifier: MIT
//
// A request's life: its stamps in order, on both hosts, in the host time of the server; and the
// stages between neighbouring stamps (design §4, §11; NSight §4.1). Where the hosts are different
// machines, two_hosts.h brings the client's stamps into that time.
#ifndef ANALYSIS_LIFETIME_LIFETIME_H
#define ANALYSIS_LIFETIME_LIFETIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/span.h"
#include "base/array.h"

// In order; what each is: lifetimes.tbl.h.
enum stamp_kind {
#define STAMP(NAME, name, stage, ROLE, means) STAMP_##NAME,
#include "analysis/lifetime/lifetimes.tbl.h"
    STAMP_KINDS
};

// A stage ends at the stamp of the same position: stage[STAMP_NIC] is what lies before M(n).
// STAMP_INTENDED ends none. Where a stamp could not be taken at all, its stage merges into the
// next one that has a stamp and reads 0 (struct lifetime.merged). But without M(n) all up to M(a)
// is in stage[STAMP_NIC]: nobody knows how much of it is the network's.
enum { STAGES = STAMP_KINDS };

// What is one stage, because nothing takes the stamps that would divide it; bits.
enum undivided {
    UNDIVIDED_NETWORK = 1,  // the network's two ways are one stage, the one that ends at client RX
    UNDIVIDED_WAY_IN = 2,   // from the client to M(a): stage[STAMP_NIC]
    UNDIVIDED_WAY_BACK = 4, // from the reply to the client: stage[STAMP_CLIENT_RX]
};

// Names as the user sees them: "intended", "M(n)"; "client queue", "R core", "A core", ...
// undivided: of enum undivided.
const char *stamp_name(enum stamp_kind kind);
const char *stage_name(enum stamp_kind ends_at, unsigned undivided);

// Where the work of a stage happens.
enum core_role { ROLE_CLIENT, ROLE_NETWORK, ROLE_R, ROLE_A, ROLES };
enum core_role stage_role(enum stamp_kind ends_at);
const char *role_name(enum core_role role); // "client", "network", "R", "A"

enum lifetime_state {
#define LIFETIME_STATE(NAME, words, means) LIFETIME_##NAME,
#include "analysis/lifetime/lifetimes.tbl.h"
    LIFETIME_STATES
};
_Static_assert(LIFETIME_WHOLE == 0, "a zeroed state is whole");
const char *lifetime_state_name(enum lifetime_state state); // "no M(n) stamp", ...

#define NO_CALL UINT32_MAX

struct lifetime {
    uint64_t request;                 // index in the sample log
    int64_t stamp_ns[STAMP_KINDS];    // host time; meaningful where present. Of an untaken M(n) or
                                      // M(h) since when it is known to be at the thread's disposal
    uint16_t stamp_core[STAMP_KINDS]; // NO_CORE where unknown
    uint16_t present;                 // bit per stamp_kind
    uint16_t untaken;                 // bit per stamp that nothing could take: not missing
    uint16_t merged;                  // bit per stage that reads 0 for want of a stamp
    uint16_t disordered;              // bit per stamp that lies before its predecessor by more than
                                      // the clock error; the stage reads 0
    uint16_t fallback;                // bit per stamp that comes from a lesser source: an event's
                                      // time for want of an skb stamp, a coalesced RX stamp, a
                                      // transmit that may be a retransmission
    uint8_t state;                    // enum lifetime_state
    uint8_t status;                   // enum sample_status
    uint16_t operation;
    uint32_t key;        // of the load's keys
    uint32_t connection; // index into the client's connection table, or NO_CONNECTION: never sent
    uint32_t thread;     // the server thread that received it, 0 unknown
    uint32_t batch;      // that thread's epoll_wait return, 0 unknown
    uint16_t batch_position;
    uint16_t in_flight;    // requests on its connection that were unanswered when it was sent
    uint16_t application;  // whose message it is (applications.h); 0 where there is one
    uint16_t load;         // which load sent it: 0 the one that is looked at, else one beside it
    uint32_t receive_call; // its receive and send call: indices into application_calls, or NO_CALL
    uint32_t send_call;
    uint32_t
        sharing;     // requests that have the same receive call and the same send call, with itself
    bool unaccepted; // as it was handed off, nobody had accepted its connection yet
    bool earlier;    // it was answered before what is looked at, and says only what is ordinary
    int64_t in_part_ns; // since when it was received and the reply, or one before it on its
                        // connection, was sent in part only; 0: replies took one call each
    // Between these the server had a part of the request, of which its thread had read nothing,
    // though the client had not sent the last of it; equal: at no time.
    int64_t part_ready_ns, part_read_ns;
    // How far the two hosts' clocks may be apart, beyond the clock error, when they are different
    // machines; 0 on one. +infinity: not known closely enough. Then the network's two ways are one
    // stage, which ends at client RX.
    double hosts_error_ns;
    int64_t client_moved_ns; // by which the client's stamps were moved into the server's time
    int64_t told_ns;         // M(n) is by the NIC's clock: when the kernel had the packet; else 0
    double latency_ns;       // intended to reply read; +infinity when unanswered
    double uncorrected_latency_ns; // send to reply read; NAN when unsent
    double stage_ns[STAGES];       // add up to latency_ns
};

struct lifetime_array ARRAY_OF(struct lifetime);

// From its first stamp to its last one; of a life without stamps begin_ns is above end_ns.
struct time_range lifetime_extent(const struct lifetime *life);

// The server's cores that it came to, each once, in that order. Returns how many.
enum { LIFETIME_CORES = STAMP_SERVER_TX - STAMP_NIC + 1 };
size_t lifetime_cores(const struct lifetime *life, uint16_t cores[LIFETIME_CORES]);

// A message has several lifetimes on the server (NSight §4.1), each of which may be slow for
// reasons of its own.
enum lifetime_part {
    PART_WHOLE,   // all of it, client and network included
    PART_RECEIVE, // M(n) to M(a): until the application has the request
    PART_SERVICE, // M(a) to reply: until the application has answered it
    PART_SEND,    // reply to server TX: until the answer has left
    PARTS
};
const char *lifetime_part_name(enum lifetime_part part); // "whole", "receive", "service", "send"

// Between which stamps a part lies.
enum stamp_kind lifetime_part_begin(enum lifetime_part part);
enum stamp_kind lifetime_part_end(enum lifetime_part part);

// Stamps out of order, over many lifetimes.
struct disorder {
    uint64_t clamped;    // by no more than the clock error: the stage reads 0, nothing is wrong
    uint64_t violations; // by more
    double worst_ns;     // the largest of these
};

// Fills merged, disordered, stage_ns, latency_ns and uncorrected_latency_ns from the stamps that
// are present, and adds to *disorder. Stages add up to latency_ns exactly (all are whole ns).
// Latencies stay what they are (+infinity, NAN) where intended, send or reply read is missing.
void lifetime_compute_stages(struct lifetime *life, double clock_error_ns,
                             struct disorder *disorder);

// The state that follows from the stamps that are present, for an answered request whose connection
// the server knows. It can be whole without those that are untaken: of a user-space network stack
// with M(a) and the reply alone, or with M(n) beside (NSight §8).
enum lifetime_state lifetime_state_of_stamps(const struct lifetime *life);

// How long a part of a whole lifetime took; NAN where it lacks the stamp at its end.
double lifetime_part_ns(const struct lifetime *life, enum lifetime_part part);

static inline bool lifetime_has(const struct lifetime *life, enum stamp_kind kind)
{
    return (life->present >> kind & 1) != 0;
}

// A stamp, or where there is none that other one.
static inline int64_t lifetime_stamp_ns(const struct lifetime *life, enum stamp_kind wanted,
                                        enum stamp_kind otherwise)
{
    return life->stamp_ns[lifetime_has(life, wanted) ? wanted : otherwise];
}

#endif
