// SPDX-License-Identifier: MIT
//
// summary.json: the verdict for scripts (docs/summary-json.md).
#ifndef ANALYSIS_EXPORT_RUN_SUMMARY_H
#define ANALYSIS_EXPORT_RUN_SUMMARY_H

#include <jansson.h>

#include "analysis/run/run_analysis.h"

// The document. The caller owns it.
json_t *run_summary_json(const struct run_analysis *run);

// Adds to a diagnosis's object what the views found: queue, contexts and blocking.
void run_summary_add_views(json_t *object, const struct run_analysis *run,
                           const struct diagnosis *diagnosis);

// What the processor's trace gave; null where the capture took none.
json_t *run_summary_trace(const struct run_trace *trace);

// The files of categories that count before the program's own: [{"file", "patterns": how many}].
json_t *run_summary_categories(const struct run_analysis *run);

#endif
