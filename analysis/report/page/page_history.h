// SPDX-License-Identifier: MIT
//
// The history as a page: every percentile and cause over the runs, with intervals, levels and where
// they changed.
#ifndef ANALYSIS_REPORT_PAGE_PAGE_HISTORY_H
#define ANALYSIS_REPORT_PAGE_PAGE_HISTORY_H

#include "analysis/compare/history.h"

// A self-contained page, written as a whole or not at all.
int history_page_write(const struct history_series_array *all, const char *path, struct error *err);

#endif
