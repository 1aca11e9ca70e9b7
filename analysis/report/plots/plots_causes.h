// SPDX-License-Identifier: MIT
//
// Plots of the causes of a run's first slice, each a whole SVG picture (svg_pieces.h).
#ifndef ANALYSIS_REPORT_PLOTS_PLOTS_CAUSES_H
#define ANALYSIS_REPORT_PLOTS_PLOTS_CAUSES_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/run/run_analysis.h"

// Whether there are any: else none of these may be drawn.
bool plot_has_causes(const struct run_analysis *run);

// Each cause's share of what the slow requests took longer, in words, as in the page's bar.
int plot_causes(const struct run_analysis *run, FILE *out);

// What each cause added to the messages that it slowed: least, quartiles, most (NSight, figures 13
// and 15).
int plot_boxes(const struct run_analysis *run, FILE *out);

// What each cause added to each message, over time (NSight, figures 3 and 12). Of very many
// messages the slowest, and the picture says so.
int plot_balloons(const struct run_analysis *run, FILE *out);

#endif
