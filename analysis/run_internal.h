// SPDX-License-Identifier: MIT
//
// What the files that make up run_analyze share: each fills its part of struct run_analysis.
#ifndef ANALYSIS_RUN_INTERNAL_H
#define ANALYSIS_RUN_INTERNAL_H

#include "analysis/run_analysis.h"

// From the lifetimes: counts, rates, latencies and their intervals, stages (run_statistics.c).
// -1: no memory.
int run_statistics(struct run_analysis *run);

// Puts the findings into words: run->verdict (run_verdict.c).
void run_verdict(struct run_analysis *run);

#endif
