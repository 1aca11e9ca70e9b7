// SPDX-License-Identifier: MIT
//
// The page's plots as files of their own, for papers and slides.
#ifndef ANALYSIS_REPORT_PLOTS_REPORT_PLOTS_H
#define ANALYSIS_REPORT_PLOTS_REPORT_PLOTS_H

#include <stdbool.h>

#include "analysis/run/run_analysis.h"
#include "base/error.h"

// Makes the folder for plots, if it is not there: to be known before a long analysis. ERROR_INPUT:
// there can be none.
int report_plots_folder(const char *folder, struct error *err);

// Writes an SVG of each plot that the run has data for into the folder, which is made if it is not
// there: latency.svg, heat.svg, stages.svg, where there are causes causes.svg, boxes.svg and
// balloons.svg, where packets were stamped hops.svg, and of the slowest message timeline.svg; png:
// and a PNG beside each, by rsvg-convert. ERROR_INPUT: there can be no such folder, or there is no
// such program.
int report_plots_write(const struct run_analysis *run, const char *folder, bool png,
                       struct error *err);

#endif
