// SPDX-License-Identifier: MIT
//
// The analysis of one run folder, from its logs to the verdict.
#ifndef ANALYSIS_RUN_ANALYZE_H
#define ANALYSIS_RUN_ANALYZE_H

#include "analysis/run/run_analysis.h"
#include "base/progress.h"

// Reads a run folder and fills *out; the caller frees. Bad or missing files are ERROR_INPUT.
// slices: what to diagnose, the first for the verdict; none: what the experiment asks for.
// categories: a file that takes precedence over the run's own, or NULL.
int run_analyze(const char *run_dir, const struct diagnosis_slice *slices, size_t slice_count,
                const char *categories, struct progress *progress, struct run_analysis *out,
                struct error *err);

#endif
