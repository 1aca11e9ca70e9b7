// SPDX-License-Identifier: MIT
//
// Distributions of latency beside each other (NSight, Figure 17): all of them on the left, on the
// right the slowest percent, by how many requests are slower still. One SVG, for a README or a
// page.
#ifndef ANALYSIS_REPORT_PLOTS_REPORT_CDF_H
#define ANALYSIS_REPORT_PLOTS_REPORT_CDF_H

#include <stddef.h>
#include <stdio.h>

enum { CDF_SERIES_MAX = 8 }; // what is beyond is left out

struct cdf_series {
    const char *name;
    const double *sorted_us; // ascending; +infinity: unanswered
    size_t count;
};

// Writes it; the caller checks the stream for errors. Without finite latencies there are no curves.
void report_cdf_svg(const struct cdf_series *series, size_t count, FILE *out);

#endif
