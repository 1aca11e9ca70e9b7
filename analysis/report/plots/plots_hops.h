// SPDX-License-Identifier: MIT
//
// The plot of what of the network's time passed between which hops, a whole SVG picture
// (svg_pieces.h): for each way a bar a percentile, as on the page.
#ifndef ANALYSIS_REPORT_PLOTS_PLOTS_HOPS_H
#define ANALYSIS_REPORT_PLOTS_PLOTS_HOPS_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/run/run_analysis.h"

// Whether there is anything: else it may not be drawn.
bool plot_has_hops(const struct run_analysis *run);

int plot_hops(const struct run_analysis *run, FILE *out);

#endif
