// SPDX-License-Identifier: MIT
//
// The time in a trace, as its timing packets tell it: TSC the whole of it, MTC some bits of the
// crystal's clock, CYC the core's cycles, whose length follows from the core's ratio (CBR) or from
// the cycles between MTCs. Gives the same time as libipt, to the last tick (Intel SDM, volume 3,
// "Timing Packets"; libipt 2.0.5 for how cycles are calibrated and losses counted).
#ifndef ANALYSIS_PT_WALK_PT_TRACE_CLOCK_H
#define ANALYSIS_PT_WALK_PT_TRACE_CLOCK_H

#include <intel-pt.h>
#include <stdbool.h>
#include <stdint.h>

// What the clock shows.
struct pt_reading {
    uint64_t tsc;
    uint32_t lost_mtc, lost_cyc; // packets that could not be used, since the last TSC
    bool known;
};

struct pt_trace_clock {
    struct pt_reading now;
    uint64_t base;         // the time of the last TSC or MTC ...
    uint64_t since;        // ... and what CYCs have added
    uint32_t ctc, ctc_cyc; // the crystal's clock at that MTC, and when counting cycles began
    bool have_tma, have_mtc;
    // How long a cycle is, in ticks / 256.
    uint64_t cycle, shortest, longest;
    uint64_t cycles_of_mtc, cycles_of_tsc, last_tsc;
    uint32_t last_ctc;
    bool have_ctc, behind_psb;
    // How the trace was recorded.
    uint32_t crystal_eax, crystal_ebx;
    uint8_t mtc_frequency, nominal_ratio;
    bool skl168; // erratum: a CYC before a PSB may be missing
};

void pt_trace_clock_init(struct pt_trace_clock *clock, const struct pt_config *config);

// Forgets all that packets said.
void pt_trace_clock_restart(struct pt_trace_clock *clock);

// An overflow: the length of cycles is not known any more.
void pt_trace_clock_uncalibrate(struct pt_trace_clock *clock);

// Of the packets that may come in the header of a PSB, TSC and CBR mean something else there.
// False: such packets cannot be; libipt fails here, too.
void pt_trace_clock_psb(struct pt_trace_clock *clock);
bool pt_trace_clock_tsc(struct pt_trace_clock *clock, uint64_t tsc, bool header);
bool pt_trace_clock_cbr(struct pt_trace_clock *clock, uint8_t ratio, bool header);
bool pt_trace_clock_tma(struct pt_trace_clock *clock, uint16_t ctc, uint16_t fast);
bool pt_trace_clock_mtc(struct pt_trace_clock *clock, uint8_t ctc);
bool pt_trace_clock_cyc(struct pt_trace_clock *clock, uint64_t cycles);

#endif
