// SPDX-License-Identifier: MIT
//
// `taillight analyze` of processor traces: a bare stream (--pt), a trace.json, a perf.data.
#ifndef ANALYSIS_ANALYZE_TRACE_H
#define ANALYSIS_ANALYZE_TRACE_H

#include <stdbool.h>

// Whether these arguments of `taillight analyze` name a processor trace, and no run folder.
bool pt_analyze_wants(int argc, char **argv);

// argv[0] is "analyze". Returns an exit code.
int pt_analyze_command(int argc, char **argv);

#endif
