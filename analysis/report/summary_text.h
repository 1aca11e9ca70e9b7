// SPDX-License-Identifier: MIT
//
// The terminal summary: what the report says, in about thirty lines of plain text.
#ifndef ANALYSIS_REPORT_SUMMARY_TEXT_H
#define ANALYSIS_REPORT_SUMMARY_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/run/run_analysis.h"

struct summary_style {
    bool unicode; // bars of blocks and typographic signs; else plain ASCII
    bool colour;  // ANSI colours
    int width;    // columns, at least 80
};

// What suits the stream: colours only on a terminal (and not with NO_COLOR or TERM=dumb), Unicode
// only where the locale's character set is UTF-8, as wide as the terminal, between 80 and 100.
struct summary_style summary_style_for(FILE *stream);

void summary_text_write(const struct run_analysis *run, const struct summary_style *style,
                        FILE *out);

#endif
