// SPDX-License-Identifier: MIT
//
// What was found beside the diagnoses, as summary.json and the page have it.
#ifndef ANALYSIS_EXPORT_FINDINGS_JSON_H
#define ANALYSIS_EXPORT_FINDINGS_JSON_H

#include <jansson.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/diagnosis/time_budget.h"
#include "analysis/run/run_analysis.h"

// null where there is none.
json_t *time_budget_json(const struct time_budget *budget);

// What the slow requests share: a list, what stands out most first.
json_t *shared_traits_json(const struct run_analysis *run);

// What an ordinary request is made of: a list, largest part first.
json_t *ordinary_json(const struct diagnosis *diagnosis);

#endif
