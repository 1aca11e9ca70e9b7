// SPDX-License-Identifier: MIT
//
// A recording as perf made it.
#ifndef ANALYSIS_PT_PT_TRACE_PERF_H
#define ANALYSIS_PT_PT_TRACE_PERF_H

#include "analysis/pt/pt_trace.h"

// Loads a perf.data that `perf record -e intel_pt//` wrote. options: where to look for code.
int pt_trace_load_perf(struct pt_trace *trace, const char *path,
                       const struct code_image_options *options, struct error *err);

#endif
