// SPDX-License-Identifier: MIT
//
// The samples of a recording, where perf_limits asks for them.
#ifndef ANALYSIS_PERF_PERF_DATA_SAMPLES_H
#define ANALYSIS_PERF_PERF_DATA_SAMPLES_H

#include "analysis/perf/perf_data_reader.h"

void perf_read_sample(struct perf_reader *reader, const uint8_t *record, size_t size);
// Once everything is read: sorts them by time.
void perf_sort_samples(struct perf_sample_array *samples);

#endif
