// SPDX-License-Identifier: MIT
//
// What a query decoder knows at a place in a trace: pt_query.h answers from it, pt_query_packets.h
// brings it forward.
#ifndef ANALYSIS_PT_WALK_PT_QUERY_STATE_H
#define ANALYSIS_PT_WALK_PT_QUERY_STATE_H

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
    const uint8_t *tnt_end;          // behind the packets that were taken together
    uint8_t tnt_bits;
    uint8_t next; // what stands at `at` (pt_query_packets.h), as far as reading ahead got
    bool enabled; // tracing is on
    bool consume; // the packet at `at` has given its last event
    bool ip_known, ip_suppressed;
    uint64_t ip;            // of the last packet with an address
    struct pt_reading read; // the time of the last packet that answered a query
    struct pt_trace_clock clock;
    struct pt_errata errata;
    bool has_event;
    struct pt_event event;               // the latest
    struct pt_query_queue psb, tip, fup; // events that wait for such a packet
};

#endif
