// SPDX-License-Identifier: MIT
//
// What a perf.data says about itself, to read and to compare with `perf script -D`: the host it was
// made on, its records, and its clocks.
#ifndef ANALYSIS_PT_PT_RECORDING_H
#define ANALYSIS_PT_PT_RECORDING_H

#include <jansson.h>

#include "analysis/perf/perf_data.h"

// {"layout", "hostname", "os_release", "arch", "cpu", "cpuid", "perf_version", "command",
//  "cpus_online", "records": {TYPE: count}, "switches": {CPU: records}, "lost_records",
//  "lost_samples", "aux_truncated", "guest_records", "unknown_records", "complaints",
//  "first_sample", "last_sample" (perf clock, ns), "tsc": {"mult", "shift", "zero"},
//  "clock": {"id", "wall", "perf"}}
// Members that the recording lacks are left out. clock: the perf clock and the wall clock (of
// clockid `id`) at one instant, ns: a time t of the perf clock is t - perf + wall. The caller owns
// it; NULL: out of memory.
json_t *pt_recording_json(const struct perf_data *data);

#endif
