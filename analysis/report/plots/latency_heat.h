// SPDX-License-Identifier: MIT
//
// Latency over time, of all requests: how many fell into each cell of a grid whose columns are
// equally long and whose rows are equally high in the logarithm of latency. Above the rows is one
// for requests that were never answered. For the page, and for a plot of its own. The same of the
// time between two hops.
#ifndef ANALYSIS_REPORT_PLOTS_LATENCY_HEAT_H
#define ANALYSIS_REPORT_PLOTS_LATENCY_HEAT_H

#include <stdbool.h>

#include "analysis/run/run_analysis.h"

enum { HEAT_COLUMNS = 160, HEAT_ROWS = 36 };

struct latency_heat {
    double low_ns, high_ns;                      // of what was answered: the rows' bounds
    uint64_t cells[HEAT_COLUMNS][HEAT_ROWS + 1]; // requests
    size_t slowest[HEAT_COLUMNS];                // of lives->all, + 1; 0: none
    double slowest_ns[HEAT_COLUMNS];
};

// False where nothing was answered. *out, which is large, must be all zero.
bool latency_heat_fill(const struct run_lifetimes *lives, struct latency_heat *out);

// The same of a link of the network: how long messages were between its two hops. False where none
// was.
bool hop_heat_fill(const struct run_lifetimes *lives, const struct hop_row *link,
                   struct latency_heat *out);

#endif
