// SPDX-License-Identifier: MIT
//
// What the tool itself costs the server where it cannot be seen, as an estimate: how often its BPF
// programs and its shim ran in a piece of time, which the records tell, times how long they take,
// which the capture measured (profiler/program_costs.h) or `make bench BENCH=shim` did.
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
