// SPDX-License-Identifier: MIT
//
// What the JSON documents of a run and of a comparison of runs have in common.
#ifndef ANALYSIS_RUN_JSON_H
#define ANALYSIS_RUN_JSON_H

#include <jansson.h>
#include <math.h>

#include "analysis/views.h"

// null for what is not finite: JSON knows no infinity.
static inline json_t *run_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

// unit: what the numbers are divided by.
static inline json_t *run_json_spread(const struct spread *spread, double unit)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o}", "mean", run_json_number(spread->mean / unit), "min",
        run_json_number(spread->min / unit), "p25", run_json_number(spread->p25 / unit), "median",
        run_json_number(spread->median / unit), "p75", run_json_number(spread->p75 / unit), "max",
        run_json_number(spread->max / unit));
}

#endif
