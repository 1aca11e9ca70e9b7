// SPDX-License-Identifier: MIT
//
// A recording as raw streams, with a file that describes them.
#ifndef ANALYSIS_PT_PT_TRACE_JSON_H
#define ANALYSIS_PT_PT_TRACE_JSON_H

#include "analysis/pt/pt_trace.h"

// trace.json: a list of CPUs with their raw streams and context switches, modules and their
// addresses, and the conversion of time. Paths in it are relative to it.
int pt_trace_load_json(struct pt_trace *trace, const char *path, struct error *err);

#endif
