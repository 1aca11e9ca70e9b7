// SPDX-License-Identifier: MIT
//
// A comparison for scripts (docs/compare-json.md).
#ifndef ANALYSIS_COMPARE_COMPARISON_JSON_H
#define ANALYSIS_COMPARE_COMPARISON_JSON_H

#include <jansson.h>

#include "analysis/compare/comparison.h"

// The whole document of a comparison of two sides. The caller owns it; NULL: no memory.
json_t *comparison_json(const struct comparison *comparison);

// Its percentiles alone.
json_t *comparison_percentiles_json(const struct comparison *comparison);

#endif
