// SPDX-License-Identifier: MIT
//
// Prints what was decoded, as JSON and as text.
#ifndef ANALYSIS_PT_PT_RESULT_PRINT_H
#define ANALYSIS_PT_PT_RESULT_PRINT_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "analysis/pt/pt_result.h"

// {"streams": [...], "total": {...}, ...} (docs/man/taillight-analyze.1). The caller owns it.
json_t *pt_result_json(const struct pt_result *result, size_t top);
// The same as text.
void pt_result_print(const struct pt_result *result, size_t top, FILE *out);

#endif
