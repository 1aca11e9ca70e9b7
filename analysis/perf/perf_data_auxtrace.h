// SPDX-License-Identifier: MIT
//
// The AUX area, which holds the trace: its streams, and the hardware that wrote them.
#ifndef ANALYSIS_PERF_PERF_DATA_AUXTRACE_H
#define ANALYSIS_PERF_PERF_DATA_AUXTRACE_H

#include "analysis/perf/perf_data_reader.h"

void perf_read_auxtrace_info(struct perf_reader *reader, const uint8_t *record, size_t size);
void perf_read_time_conversion(struct perf_reader *reader, const uint8_t *record, size_t size);
// `available` bytes follow the record.
void perf_read_auxtrace(struct perf_reader *reader, const uint8_t *record, size_t size,
                        const uint8_t *data, uint64_t available);
// Once everything is read: finds how much of each snapshot repeats the previous one.
void perf_finish_streams(struct perf_reader *reader);

#endif
