// SPDX-License-Identifier: MIT
//
// The header of a perf.data.
#ifndef ANALYSIS_PERF_PERF_DATA_HEADER_H
#define ANALYSIS_PERF_PERF_DATA_HEADER_H

#include "analysis/perf/perf_data_reader.h"
#include "base/error.h"

// Reads the header of inputs[0]; *begin and *end: where its records lie. One that cannot be used is
// ERROR_INPUT.
int perf_read_header(struct perf_reader *reader, uint64_t *begin, uint64_t *end, struct error *err);

#endif
