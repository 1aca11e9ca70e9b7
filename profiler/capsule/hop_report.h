// SPDX-License-Identifier: MIT
//
// What Time Capsule says of its hops: for each route the packets took, how long they needed from
// hop to hop, where they were seen last, and what was not recorded; as a table for people and as a
// document for scripts (docs/capsule.md).
#ifndef PROFILER_CAPSULE_HOP_REPORT_H
#define PROFILER_CAPSULE_HOP_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "profiler/capsule/hop_link.h"
#include "profiler/capsule/hop_spec.h"
#include "profiler/capsule/packet_join.h"

struct hop_report {
    const char *filter; // as it was given; "": every TCP and UDP packet
    uint32_t one_in;
    bool carry;
    uint64_t flow_key; // of packet_flow(), with which others can tell whose packets they are
    uint64_t duration_ns;
    size_t hop_count;
    const struct hop_spec *hops;
    struct hop_counts counts[HOPS_MAX];
    bool gone[HOPS_MAX], cut[HOPS_MAX];
    const struct hop_link *link[HOPS_MAX];
    const char *machine[HOPS_MAX]; // where it is; NULL: here
    uint64_t records, forgotten, translated;
    struct packet_join *join; // its delays are sorted while it is reported
};

// Sorts the delays of all routes, as the two below need them.
void hop_report_sort(struct hop_report *report);

void hop_report_print(const struct hop_report *report, FILE *out);

// Takes what the document of another machine says of a hop: counts, and what it sends through.
// NULL: well; else the key that is not as it should be.
const char *hop_report_take(struct hop_report *report, size_t number, const json_t *hop,
                            struct hop_link *link);

// The same of who has a tap's other end; nobody, where that is not said.
void hop_report_take_holder(const json_t *holder, struct tap_holder *out);

// The caller owns it; NULL: out of memory.
json_t *hop_report_json(const struct hop_report *report);

#endif
