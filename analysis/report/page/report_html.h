// SPDX-License-Identifier: MIT
//
// report.html: one file with the page, its data and nothing to fetch, readable offline from
// file://. Without scripts it still shows the verdict and the terminal summary.
//
// The page's own scripts draw the plots: a plotting library (uPlot) could only draw the latency
// curve, not the balloons, boxes, stage bars and nested timelines. So the page depends on nothing
// and building it needs no npm.
#ifndef ANALYSIS_REPORT_PAGE_REPORT_HTML_H
#define ANALYSIS_REPORT_PAGE_REPORT_HTML_H

#include <jansson.h>

#include "analysis/run/run_analysis.h"
#include "base/error.h"

// The page's data: everything report.html shows, as one JSON document of bounded size (a few
// megabytes whatever the number of requests; what had to be cut is counted in it). Numbers are
// whole nanoseconds since the run's begin; what is not finite is null. Columns are parallel arrays.
// The caller owns the document. NULL with *err filled when memory runs out.
json_t *page_data_build(const struct run_analysis *run, struct error *err);

// Writes the page as "<path>.partial" and renames it when it is complete; on failure nothing is
// left behind and a page that was there stays as it was.
int report_write_html(const struct run_analysis *run, const char *path, struct error *err);

#endif
