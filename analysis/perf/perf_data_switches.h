// SPDX-License-Identifier: MIT
//
// The context switches of a lean reading, by CPU.
#ifndef ANALYSIS_PERF_PERF_DATA_SWITCHES_H
#define ANALYSIS_PERF_PERF_DATA_SWITCHES_H

#include "analysis/perf/perf_data_reader.h"

// Adds a SWITCH or SWITCH_CPU_WIDE to its CPU's (or thread's) list.
void perf_take_switch(struct perf_reader *reader, const struct perf_event *event);
// Once everything is read: sorts the lists.
void perf_finish_switches(struct perf_data *data);

#endif
