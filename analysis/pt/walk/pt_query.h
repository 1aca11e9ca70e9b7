// SPDX-License-Identifier: MIT
//
// Reads the packets of a trace for whoever follows its code: was the branch taken, where did the
// jump go, what happened meanwhile, and when. Behaves like libipt's query decoder (pt_qry_*), to
// the last detail of its events, their order and times, without a call for each bit. Source: Intel
// SDM, volume 3, "Trace Packets and Data Types", and, for which packets belong together and how far
// is read ahead, libipt 2.0.5. Packets that are rare or wrong end with PT_QUERY_UNUSUAL.
#ifndef ANALYSIS_PT_WALK_PT_QUERY_H
#define ANALYSIS_PT_WALK_PT_QUERY_H

#include <intel-pt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/pt/walk/pt_trace_clock.h"

enum {
    PT_QUERY_UNUSUAL = -4096, // no status of libipt's
    PT_QUERY_QUEUE = 8,
};

struct pt_query_queue {
    struct pt_event events[PT_QUERY_QUEUE];
    uint8_t first, count;
};

struct pt_query {
    const uint8_t *begin, *end, *at; // `at`: the next packet
    uint64_t tnt;                    // branches: the next one is the uppermost of tnt_bits bits
    uint64_t tnt_seams;              // bit n: n bits before the last one another packet begins
    uint8_t tnt_bits;
    uint8_t next; // what stands at `at` (pt_query_packets.h), as far as reading ahead got
    bool enabled; // tracing is on
    bool consume; // the packet at `at` has given its last event
    bool ip_known, ip_suppressed;
    uint64_t ip;            // of the last packet with an address
    struct pt_reading read; // the time of the last packet that answered a query
    struct pt_trace_clock clock;
    struct pt_errata errata;
    struct pt_query_queue psb, tip, fup; // events that wait for such a packet
    struct pt_event event;               // the latest
    bool has_event;
};

// Reads config->begin to config->end, which must outlive it.
void pt_query_open(struct pt_query *query, const struct pt_config *config);

// Like the functions of the same names of libipt's query decoder; a status or a negative one:
// -pte_eos, -pte_bad_query, or PT_QUERY_UNUSUAL.
int pt_query_sync(struct pt_query *query, uint64_t *ip, uint64_t offset);
int pt_query_branch(struct pt_query *query, bool *taken);
int pt_query_indirect(struct pt_query *query, uint64_t *ip);
int pt_query_event(struct pt_query *query, struct pt_event *event);

static inline uint64_t pt_query_offset(const struct pt_query *query)
{
    return (uint64_t)(query->at - query->begin);
}

// Makes the branches of the next TNT packets ready when there are none. 0 or a negative status.
int pt_query_fill(struct pt_query *query);
// When the last of them was taken: the status that says what comes next.
int pt_query_status(const struct pt_query *query);

#endif
