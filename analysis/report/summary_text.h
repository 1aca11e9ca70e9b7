// SPDX-License-Identifier: MIT
//
// The terminal summary: what the report says, in one screen of plain text: the verdict, the load
// and its latency, the stages, the first causes, what was lost. The full one has more of each, and
// the queues, the windows and the tuning.
#ifndef ANALYSIS_REPORT_SUMMARY_TEXT_H
#define ANALYSIS_REPORT_SUMMARY_TEXT_H

#include <stdio.h>

#include "analysis/report/summary_pieces.h"

void summary_text_write(const struct run_analysis *run, const struct summary_style *style,
                        FILE *out);

#endif
