// SPDX-License-Identifier: MIT
//
// The terminal summary. The short one is a screen: how slow, why and what helps, the verdict with
// all that weakens it, the load and its latency, the first causes, what was lost. The full one has
// all that the report says in words: the stages, the threads, the queues, the windows and the
// tuning.
#ifndef ANALYSIS_REPORT_TERMINAL_SUMMARY_TEXT_H
#define ANALYSIS_REPORT_TERMINAL_SUMMARY_TEXT_H

#include <stdio.h>

#include "analysis/report/terminal/summary_pieces.h"

void summary_text_write(const struct run_analysis *run, const struct summary_style *style,
                        FILE *out);

#endif
