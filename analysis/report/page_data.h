// SPDX-License-Identifier: MIT
//
// The page's data: everything report.html shows, as one JSON document of bounded size (a few
// megabytes whatever the number of requests; what had to be cut is counted in it). Numbers are
// whole nanoseconds since the run's begin; what is not finite is null. Columns are parallel arrays.
#ifndef ANALYSIS_REPORT_PAGE_DATA_H
#define ANALYSIS_REPORT_PAGE_DATA_H

#include <jansson.h>

#include "analysis/run/run_analysis.h"
#include "base/error.h"

// The caller owns the document. NULL with *err filled when memory runs out.
json_t *page_data_build(const struct run_analysis *run, struct error *err);

#endif
