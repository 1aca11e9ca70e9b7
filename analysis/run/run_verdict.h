// SPDX-License-Identifier: MIT
//
// The findings in words: what, how much, how sure, what was lost.
#ifndef ANALYSIS_RUN_VERDICT_H
#define ANALYSIS_RUN_VERDICT_H

#include "analysis/run/run_analysis.h"

// Writes run->findings.verdict from all other parts of the analysis, which must be complete.
void run_verdict(struct run_analysis *run);

// The verdict without its first sentence where that is the load's doubt, which the lede says.
const char *run_verdict_details(const struct run_analysis *run);

#endif
