// SPDX-License-Identifier: MIT
//
// The comparisons of a study, each over all rounds of both steps: a page, the verdicts on
// percentiles and slices, and the gates.
#ifndef EXPERIMENTS_STUDY_STUDY_COMPARE_H
#define EXPERIMENTS_STUDY_STUDY_COMPARE_H

#include "base/progress.h"
#include "experiments/results/gate_report.h"
#include "experiments/study/study_results.h"

// Makes all comparisons after the steps have been run into `folder`: writes a page
// compare-NAME.html for each, and appends an object for each to results->comparisons. The results
// of the gates go to the report under the comparison's name (NULL: nothing is judged).
int study_compare_all(struct study_results *results, const struct run_folder *folder,
                      struct gate_report *gates, struct progress *progress, struct error *err);

#endif
