// SPDX-License-Identifier: MIT
//
// The terminal summary's lines on what the run set up beside the server: what was tuned, and what
// was not and why; what became of the neighbours' loads.
#ifndef ANALYSIS_REPORT_SUMMARY_SETUP_H
#define ANALYSIS_REPORT_SUMMARY_SETUP_H

#include <stdio.h>

#include "analysis/run/run_analysis.h"

// Writes them, or nothing where nothing was set up. full: also the settings that were applied as
// asked. ascii: uses ASCII only.
void summary_setup_write(const struct run_analysis *run, bool full, bool ascii, FILE *out);

#endif
