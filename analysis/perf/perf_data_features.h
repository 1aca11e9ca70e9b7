// SPDX-License-Identifier: MIT
//
// The features of a perf.data (enum perf_feature), from a file's sections or a pipe's records.
#ifndef ANALYSIS_PERF_PERF_DATA_FEATURES_H
#define ANALYSIS_PERF_PERF_DATA_FEATURES_H

#include "analysis/perf/perf_data_reader.h"

void perf_read_feature(struct perf_reader *reader, uint64_t feature, const uint8_t *bytes,
                       uint64_t count);
void perf_read_build_id(struct perf_reader *reader, const uint8_t *record, size_t size);
void perf_read_event_update(struct perf_reader *reader, const uint8_t *record, size_t size);
// Once everything is read: sets the names of the attributes.
void perf_finish_attrs(struct perf_reader *reader);

#endif
