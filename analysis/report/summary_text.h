// SPDX-License-Identifier: MIT
//
// The terminal summary: what the report says, in one screen of plain text: the verdict, the load
// and its latency, the stages, the first causes, what was lost. The full one has more of each, and
// the queues, the windows and the tuning.
#ifndef ANALYSIS_REPORT_SUMMARY_TEXT_H
#define ANALYSIS_REPORT_SUMMARY_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/run/run_analysis.h"

struct summary_style {
    bool unicode; // bars of blocks and typographic signs; else plain ASCII
    bool colour;  // ANSI colours
    bool full;    // more than a screen
    int width;    // columns, at least 80
};

// What suits the stream: colours only on a terminal (and not with NO_COLOR or TERM=dumb), Unicode
// only where the locale's character set is UTF-8, as wide as the terminal, between 80 and 100.
struct summary_style summary_style_for(FILE *stream);

void summary_text_write(const struct run_analysis *run, const struct summary_style *style,
                        FILE *out);

#endif
