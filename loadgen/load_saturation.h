// SPDX-License-Identifier: MIT
//
// Who could not do more? A server is saturated when requests pile up on it (in flight grows, every
// connection is full, replies never come) while this client has time to spare; the client is when
// it has no CPU left, or requests pile up before they are sent although connections have room.
// Either makes the latency of the run say nothing about a server at that rate.
#ifndef LOADGEN_LOAD_SATURATION_H
#define LOADGEN_LOAD_SATURATION_H

#include <stdint.h>

#include "loadgen/load_run.h"

enum saturation { SATURATION_NONE, SATURATION_SERVER, SATURATION_CLIENT };
extern const char *const saturation_names[]; // "none", "server", "client"

struct load_saturation {
    enum saturation who;
    char why[300]; // a sentence; empty when nobody is
    // At the middle and at the end of the schedule: requests sent and not answered, and requests
    // due and not sent.
    uint64_t in_flight[2], waiting[2];
};

void load_saturation_judge(const struct load_outcome *outcome, struct load_saturation *found);

#endif
