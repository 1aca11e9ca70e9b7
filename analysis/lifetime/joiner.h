// SPDX-License-Identifier: MIT
//
// What the files of the join (join.h) share: the samples, the passages piled by connection, and
// which connection is which. Nobody else includes it.
#ifndef ANALYSIS_LIFETIME_JOINER_H
#define ANALYSIS_LIFETIME_JOINER_H

#include "analysis/lifetime/join_input.h"
#include "analysis/lifetime/passages.h"
#include "analysis/lifetime/spared.h"

struct joiner {
    const struct join_input *in;
    struct lifetime *lives;
    struct join_counts *counts;
    struct piles requests; // samples by client connection, in the order sent
    struct piles replies;  // those that were answered, in the order of their replies
    struct piles passages[PASSAGE_KINDS];
    int64_t *segment_ns;   // by sample: when the record of its segment was written
    int64_t *arrival_ns;   // by sample: M(n) by its arrival; NO_TIME: none
    int64_t *stamped_ns;   // by sample: M(n) by the NIC's clock; NO_TIME: none
    int64_t *processed_ns; // by sample: M(h) by TCP's own note; NO_TIME: none
    uint16_t *received_on; // by connection: the core of its latest recorded hand-off, or NO_CORE
    uint32_t *socket_of;   // by client connection: position in the sockets table
    uint32_t *calls_of;    // by client connection: position in the shim's table
    struct datagram_drops *dropped; // by sample, over UDP
    struct spared_times spared;
    double error_ns; // of the difference of two converted times
    bool nic_stamps; // there are any
};

// No host is up for 70 years: such a time is a damaged record, and differences of any others cannot
// overflow.
#define LATEST_NS (INT64_C(1) << 61)
#define NO_TIME   INT64_MIN

static inline int64_t host_time(const struct joiner *joiner, enum host_clock clock, uint64_t value)
{
    return time_source_to_host(&joiner->in->clock, clock, value);
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

static inline bool is_over_udp(const struct joiner *joiner, uint32_t client)
{
    return client != NO_CONNECTION &&
           joiner->in->client_connections[client].protocol == CONNECTION_UDP;
}

#endif
