// SPDX-License-Identifier: MIT
//
// An estimate of what the tool itself costs the server where no trace shows it: how often its BPF
// programs and its shim were called in a piece of time (the records say) times how long one call
// takes (measured by the capture, profiler/events_programs.h, or by `make bench BENCH=shim`).
#ifndef ANALYSIS_DIAGNOSIS_OVERHEAD_H
#define ANALYSIS_DIAGNOSIS_OVERHEAD_H

#include <jansson.h>
#include <stdbool.h>

struct overhead {
    double record_ns; // a scheduler or interrupt event; 0: not known
    double packet_ns; // a segment and its hand-off
    double call_ns;   // a socket call that the shim records
};

// From capture.json; shim: whether socket calls were recorded. NULL: nothing is known.
struct overhead overhead_of_capture(const json_t *capture, bool shim);

#endif
