// SPDX-License-Identifier: MIT
//
// The plot of the slowest message's life, a whole SVG picture (svg_pieces.h), after NSight's
// figure 5: its stamps as lines, its stages, and what ran on each of the server's cores that it
// lived on, spans nested downwards, from its first stamp to its last.
#ifndef ANALYSIS_REPORT_PLOTS_PLOTS_TIMELINE_H
#define ANALYSIS_REPORT_PLOTS_PLOTS_TIMELINE_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/run/run_analysis.h"

// Whether there is anything: else it may not be drawn.
bool plot_has_timeline(const struct run_analysis *run);

int plot_timeline(const struct run_analysis *run, FILE *out);

#endif
