// SPDX-License-Identifier: MIT
//
// How the clock of an agent on another host relates to the controller's. The controller asks for it
// over their link several times; the shortest round trip bounds the error (Cristian 1989). So
// agents that share no clock begin together, within a stated spread, and their measurements get one
// time axis.
#ifndef LOADGEN_AGENT_CLOCK_H
#define LOADGEN_AGENT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tsc_rate.h"
#include "loadgen/engine/engine_result.h"

enum { AGENT_CLOCK_TRIPS = 16 };

struct agent_clock {
    unsigned trips; // questions that were answered
    int64_t asked_ns;
    int64_t offset_ns; // the agent's CLOCK_MONOTONIC less ours
    uint64_t trip_ns;  // of the shortest round trip
    bool asked;        // a question is sent and not yet answered
};

// CLOCK_MONOTONIC of this host.
int64_t agent_clock_now_ns(void);

// To be called when a question has been sent, and when its answer has come.
void agent_clock_asked(struct agent_clock *clock);
void agent_clock_answered(struct agent_clock *clock, int64_t at_ns);

// How far offset_ns may be off: half the shortest round trip.
uint64_t agent_clock_bound_ns(const struct agent_clock *clock);

// Converts the stamps of an agent on another clock to this host's TSC axis, on which the agreed
// instant is begin_tsc and the rate tsc_hz. Its kernel's stamps are in its CLOCK_REALTIME, which
// may be slewed meanwhile and of which there is no clock log: they are removed and counted as
// missing, and stamps_why gives the reason.
void agent_clock_rebase(struct engine_result *result, uint64_t begin_tsc, double tsc_hz);

#endif
