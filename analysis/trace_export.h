// SPDX-License-Identifier: MIT
//
// The files that `taillight analyze` makes of a decoded trace, beside what it prints: all of them
// in one pass over the spans.
#ifndef ANALYSIS_TRACE_EXPORT_H
#define ANALYSIS_TRACE_EXPORT_H

#include <stdio.h>

#include "analysis/pt/pt_result.h"
#include "analysis/pt/pt_segments.h"
#include "analysis/pt/pt_trace.h"
#include "base/error.h"

// Paths; NULL: not wanted.
struct pt_export_files {
    const char *perfetto; // analysis/export/pt_perfetto.h
    const char *folded;   // analysis/export/pt_folded.h
    const char *csv;      // functions with their totals
    const char *page;     // analysis/report/page/page_trace.h
    FILE *strips;         // who ran on each CPU, for a terminal (analysis/pt/pt_strip.h)
};

// Decodes as pt_result_decode does, and writes the files. The caller frees *out with
// pt_result_free, also after a failure.
int pt_export_decode(const struct pt_trace *trace, const struct pt_decode_options *options,
                     const struct pt_export_files *files, struct pt_result *out, struct error *err);

#endif
