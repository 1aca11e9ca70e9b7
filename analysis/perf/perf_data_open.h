// SPDX-License-Identifier: MIT
//
// Maps the files of a perf.data for the parser.
#ifndef ANALYSIS_PERF_PERF_DATA_OPEN_H
#define ANALYSIS_PERF_PERF_DATA_OPEN_H

#include "analysis/perf/perf_data.h"
#include "base/error.h"

// The thin opener: maps a perf.data file, the saved output of `perf record -o -`, a perf.data
// directory, or standard input ("-": copied to an unlinked temporary file first), and parses it.
int perf_data_open(const char *path, const struct perf_limits *limits, struct perf_data *out,
                   struct error *err);

#endif
