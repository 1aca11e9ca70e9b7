// SPDX-License-Identifier: MIT
//
// The terminal's table of what made the slow requests slow, and the lines of other slices.
#ifndef ANALYSIS_REPORT_TERMINAL_SUMMARY_CAUSES_H
#define ANALYSIS_REPORT_TERMINAL_SUMMARY_CAUSES_H

#include "analysis/report/terminal/summary_pieces.h"

// How slow the slice is, its causes, and how much they explain.
void summary_write_diagnosis(const struct summary *s, const struct diagnosis *diagnosis);

// One line a part of the lifetimes: how slow the slice's are, and why.
void summary_write_parts(const struct summary *s);

// One line a window: when, how slow, and the causes that weighed most.
void summary_write_windows(const struct summary *s);

#endif
