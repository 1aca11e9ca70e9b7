// SPDX-License-Identifier: MIT
//
// `taillight analyze RUN`: lifetimes and diagnosis from what a run captured.
#ifndef ANALYSIS_ANALYZE_COMMAND_H
#define ANALYSIS_ANALYZE_COMMAND_H

#include "analysis/run/run_analysis.h"
#include "base/error.h"

// argv[0] is the command's name. Returns an exit code; 4 (inconclusive) when the verdict is N/A.
int analyze_command(int argc, char **argv);

// Writes run.db and summary.json into a folder, each under a partial name first.
int run_analysis_write(const struct run_analysis *analysis, const char *folder, struct error *err);

#endif
