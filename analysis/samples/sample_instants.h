// SPDX-License-Identifier: MIT
//
// Which instant a sample tells of. A counter's interrupt is an NMI: it tells of now. The clock's
// (cpu-clock) is an ordinary timer interrupt: perf notes the time within it, and where the core had
// been before it; so that instant lies before the interrupt, which the events saw begin.
#ifndef ANALYSIS_SAMPLES_SAMPLE_INSTANTS_H
#define ANALYSIS_SAMPLES_SAMPLE_INSTANTS_H

#include "analysis/lifetime/lifetime.h"
#include "analysis/samples/sample_profile.h"
#include "analysis/timeline/span.h"

// Moves the clock's samples to just before the interrupt that they were taken in; others stay.
// Their order stays, too. Does nothing for other events.
void sample_instants_settle(struct sample_profile *profile, const struct host_timeline *host);

#endif
