// SPDX-License-Identifier: MIT
//
// What the lifetimes of a run's requests amount to: counts, rates, latencies with their intervals,
// and the stages at each quantile.
#ifndef ANALYSIS_RUN_STATISTICS_H
#define ANALYSIS_RUN_STATISTICS_H

#include "analysis/run/run_analysis.h"

// Fills run->lifetimes, whose requests are joined. -1: no memory.
int run_statistics(struct run_analysis *run);

#endif
