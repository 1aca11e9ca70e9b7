// SPDX-License-Identifier: MIT
//
// The findings in words: what, how much, how sure, what was lost.
#ifndef ANALYSIS_RUN_VERDICT_H
#define ANALYSIS_RUN_VERDICT_H

#include "analysis/run/run_analysis.h"

// Writes run->findings.verdict from all other parts of the analysis, which must be complete.
void run_verdict(struct run_analysis *run);

#endif
