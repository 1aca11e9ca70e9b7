// SPDX-License-Identifier: MIT
//
// The history on the terminal, as a list and drawn, and for scripts (docs/gates.md).
#ifndef ANALYSIS_COMPARE_HISTORY_OUTPUT_H
#define ANALYSIS_COMPARE_HISTORY_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "analysis/compare/history.h"

// A line a series: how many runs, the latest value, and where its level changed.
void history_list(const struct history_series_array *all, FILE *out);

// A bar a run, and a line where the level changed.
void history_plot(const struct history_series *series, bool unicode, FILE *out);

// The caller owns it.
json_t *history_json(const struct history_series_array *all);

#endif
