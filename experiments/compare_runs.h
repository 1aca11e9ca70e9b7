// SPDX-License-Identifier: MIT
//
// Two runs against each other, from their folders: what `taillight compare` of two runs and the
// comparisons of a study have in common.
#ifndef EXPERIMENTS_COMPARE_RUNS_H
#define EXPERIMENTS_COMPARE_RUNS_H

#include "analysis/compare/run_compare.h"
#include "base/progress.h"

// The tail and the ordinary ones, for when nothing was asked for: p99-100, p45-55. The caller frees
// the array either way.
int compare_runs_usual_slices(struct diagnosis_slice_array *out, struct error *err);

// Analyses one run after the other, so that one at a time is in memory, and compares the slices.
// categories: as of run_analyze(), for both runs. Not a run or damaged: ERROR_INPUT that names the
// folder. The caller frees *out either way.
int compare_runs(const char *const folders[COMPARE_SIDES],
                 const struct diagnosis_slice_array *slices, const char *categories,
                 struct progress *progress, struct run_comparison *out, struct error *err);

// Whether at least one slice could be compared.
bool compare_runs_any_known(const struct run_comparison *comparison);

#endif
