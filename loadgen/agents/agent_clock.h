// SPDX-License-Identifier: MIT
//
// How the clock of an agent on another host relates to the controller's: asked for over their link,
// several times; the shortest round trip bounds the error (Cristian 1989). So agents that share no
// clock begin together, within a stated spread, and what they measured gets one time axis.
#ifndef LOADGEN_AGENT_CLOCK_H
#define LOADGEN_AGENT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tsc_rate.h"
#include "loadgen/engine/engine_result.h"

enum { AGENT_CLOCK_TRIPS = 16 };

struct agent_clock {
    unsigned trips; // answered
    int64_t asked_ns;
    int64_t offset_ns; // the agent's CLOCK_MONOTONIC less ours
    uint64_t trip_ns;  // of the shortest round trip
    bool asked;        // and not yet answered
};

// CLOCK_MONOTONIC here.
int64_t agent_clock_now_ns(void);

// The question has been sent; the answer has come.
void agent_clock_asked(struct agent_clock *clock);
void agent_clock_answered(struct agent_clock *clock, int64_t at_ns);

// How far offset_ns may be off: half the shortest round trip.
uint64_t agent_clock_bound_ns(const struct agent_clock *clock);

// Gives what an agent of another clock measured the TSC axis of this host, on which the agreed
// instant is begin_tsc and the rate tsc_hz. Stamps of its kernel are in its CLOCK_REALTIME, which
// may be slewed while it runs and whose course nobody has noted: they are taken out, counted as
// missing, and stamps_why says so.
void agent_clock_rebase(struct engine_result *result, uint64_t begin_tsc, double tsc_hz);

#endif
