// SPDX-License-Identifier: MIT
//
// What the JSON documents of a run and of a comparison of runs have in common.
#ifndef ANALYSIS_RUN_JSON_H
#define ANALYSIS_RUN_JSON_H

#include <jansson.h>

#include "analysis/diagnosis/views.h"
#include "base/json_numbers.h"

// unit: what the numbers are divided by.
static inline json_t *run_json_spread(const struct spread *spread, double unit)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o}", "mean", json_number_or_null(spread->mean / unit), "min",
        json_number_or_null(spread->min / unit), "p25", json_number_or_null(spread->p25 / unit),
        "median", json_number_or_null(spread->median / unit), "p75",
        json_number_or_null(spread->p75 / unit), "max", json_number_or_null(spread->max / unit));
}

#endif
