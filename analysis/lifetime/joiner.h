// SPDX-License-Identifier: MIT
//
// The state of a join (join.c). Each kind of record is turned into passages ("at this time
// the stream of that connection had come to this offset"), piled by connection in order of time
// (join_piles.c); one way along a connection's requests and passages finds each request's stamps
// (join_walk.c).
#ifndef ANALYSIS_LIFETIME_JOINER_H
#define ANALYSIS_LIFETIME_JOINER_H

#include "analysis/lifetime/join_input.h"
#include "analysis/lifetime/streams.h"

// The server's records, by what stamp they make.
enum passage_kind {
    SEGMENTS,
    HANDOFFS,
    TRANSMITS,
    ARRIVALS, // go before segments: the link was virtual
    TAKES,    // stand in for hand-offs that were not delivered
    EVENT_PASSAGES,
    RECEIVES = EVENT_PASSAGES,
    SENDS,
    PASSAGE_KINDS
};

struct joiner {
    const struct join_input *in;
    struct lifetime *lives;
    struct join_counts *counts;
    struct piles requests; // samples by client connection, in the order sent
    struct piles passages[PASSAGE_KINDS];
    int64_t *segment_ns;   // by sample: when the record of its segment was written
    int64_t *arrival_ns;   // by sample: M(n) by its arrival; NO_TIME: none
    int64_t *processed_ns; // by sample: M(h) by TCP's own note; NO_TIME: none
    uint32_t *socket_of;   // by client connection: position in the sockets table
    uint32_t *calls_of;    // by client connection: position in the shim's table
    double error_ns;       // of the difference of two converted times
};

// No host is up for 70 years: such a time is a damaged record, and differences of any others cannot
// overflow.
#define LATEST_NS (INT64_C(1) << 61)
#define NO_TIME   INT64_MIN

static inline int64_t host_time(const struct joiner *joiner, enum host_clock clock, uint64_t value)
{
    return time_source_to_host(&joiner->in->clock, clock, value);
}

static inline int64_t client_time(const struct joiner *joiner, enum host_clock clock,
                                  uint64_t value)
{
    const struct join_input *in = joiner->in;
    return time_source_to_host(in->client_clock ? in->client_clock : &in->clock, clock, value);
}

// A time that cannot be is counted, and not set.
static inline void set_stamp(struct joiner *joiner, struct lifetime *life, enum stamp_kind kind,
                             int64_t time_ns, uint16_t core)
{
    if (time_ns > LATEST_NS || time_ns < -LATEST_NS) {
        joiner->counts->impossible_stamps++;
        return;
    }
    life->stamp_ns[kind] = time_ns;
    life->stamp_core[kind] = core;
    life->present |= (uint16_t)(1u << kind);
}

// The samples by connection, each with its lifetime and the client's own stamps. -1: no memory.
int join_pile_requests(struct joiner *joiner);

// The server's records by connection. -1: no memory.
int join_pile_server(struct joiner *joiner);

// Which connection is which, in the kernel's table and in the shim's. -1: no memory.
int join_match_tables(struct joiner *joiner);

// Gives the requests of a client's connection their stamps.
void join_walk_connection(struct joiner *joiner, size_t client);

// A segment's record says where it ends only. But when it was written after the bytes had gone
// further up, it is of later bytes. Segments and hand-offs are timed by the same clock.
void join_check_segment(struct joiner *joiner, struct lifetime *life, int64_t further_up_ns);

#endif
