// SPDX-License-Identifier: MIT
//
// The terminal summary's lines on queues and head-of-line blocking.
#ifndef ANALYSIS_REPORT_SUMMARY_VIEWS_H
#define ANALYSIS_REPORT_SUMMARY_VIEWS_H

#include <stdio.h>

#include "analysis/run/run_analysis.h"

// How many messages were ahead, by kind, and who blocked most: at most six lines of 98 columns,
// none where nothing is known.
void summary_views_write(const struct run_analysis *run, const struct diagnosis *diagnosis,
                         FILE *out);

#endif
