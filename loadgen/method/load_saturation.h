// SPDX-License-Identifier: MIT
//
// Was the server or the client saturated? A server is saturated when requests pile up on it (in
// flight grows, every connection is full, replies never come) while this client has time to spare;
// the client is when it has no CPU left, or requests pile up before they are sent although
// connections have room. In either case the latency says nothing about a server at that rate.
#ifndef LOADGEN_METHOD_LOAD_SATURATION_H
#define LOADGEN_METHOD_LOAD_SATURATION_H

#include <jansson.h>
#include <stdint.h>

#include "loadgen/engine/engine_result.h"
#include "loadgen/method/load_summary.h"

enum saturation { SATURATION_NONE, SATURATION_SERVER, SATURATION_CLIENT };
extern const char *const saturation_names[]; // "none", "server", "client"

struct load_saturation {
    enum saturation who;
    char why[300]; // a sentence; empty when nobody is
    // At the middle and at the end of the schedule: requests sent and not answered, and requests
    // due and not sent.
    uint64_t in_flight[2], waiting[2];
};

// Of a run and its figures.
void load_saturation_judge(const struct engine_result *run, const struct load_summary *summary,
                           struct load_saturation *found);

// The member "saturated" of docs/load-json.md; the caller owns it. The second function reads it
// back: what is missing becomes none, or 0.
json_t *load_saturation_json(const struct load_saturation *found);
void load_saturation_read(const json_t *json, struct load_saturation *found);

#endif
