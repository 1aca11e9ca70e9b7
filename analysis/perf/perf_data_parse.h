// SPDX-License-Identifier: MIT
//
// Reads the bytes of a perf.data: the header, the records of every input, and what can only be done
// when everything has been read.
#ifndef ANALYSIS_PERF_PERF_DATA_PARSE_H
#define ANALYSIS_PERF_PERF_DATA_PARSE_H

#include "analysis/perf/perf_data.h"
#include "base/error.h"

// Parses inputs[0..count). The bytes must stay until perf_data_free. A header that cannot be used
// at all is ERROR_INPUT (file and byte offset named); everything after that is a complaint.
int perf_data_parse(const struct perf_input *inputs, size_t count, const struct perf_limits *limits,
                    struct perf_data *out, struct error *err);

#endif
