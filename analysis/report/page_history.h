// SPDX-License-Identifier: MIT
//
// The history as a page: every percentile and cause over the runs, with intervals, levels and where
// they changed.
#ifndef ANALYSIS_REPORT_PAGE_HISTORY_H
#define ANALYSIS_REPORT_PAGE_HISTORY_H

#include "analysis/compare/history.h"

// A self-contained page, written as a whole or not at all.
int history_page_write(const struct history_series_array *all, const char *path, struct error *err);

// Its headline: how many series of how many runs changed their level, and the latest changes.
void history_page_verdict(const struct history_series_array *all, char *out, size_t out_bytes);

#endif
