// SPDX-License-Identifier: MIT
//
// The page's plots as files of their own, for papers and slides.
#ifndef ANALYSIS_REPORT_REPORT_PLOTS_H
#define ANALYSIS_REPORT_REPORT_PLOTS_H

#include "analysis/run/run_analysis.h"
#include "base/error.h"

// Writes an SVG of each plot that the run has data for into the folder, which is made if it is not
// there: latency.svg, heat.svg, stages.svg, and causes.svg where there are any. ERROR_INPUT: there
// can be no such folder.
int report_plots_write(const struct run_analysis *run, const char *folder, struct error *err);

#endif
