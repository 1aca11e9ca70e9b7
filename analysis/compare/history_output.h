// SPDX-License-Identifier: MIT
//
// Writes the history as a list and as bars for the terminal, and as JSON (docs/gates.md).
#ifndef ANALYSIS_COMPARE_HISTORY_OUTPUT_H
#define ANALYSIS_COMPARE_HISTORY_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "analysis/compare/history.h"

// One line per series: how many runs, the latest value, and where its level changed.
void history_list(const struct history_series_array *all, FILE *out);

// One bar per run, and a line where the level changed.
void history_plot(const struct history_series *series, bool unicode, FILE *out);

// The caller owns it.
json_t *history_json(const struct history_series_array *all);

#endif
