// SPDX-License-Identifier: MIT
//
// The comparisons of a study, over all rounds of both steps: a page each, what the percentiles and
// the slices came to, and the gates.
#ifndef EXPERIMENTS_STUDY_STUDY_COMPARE_H
#define EXPERIMENTS_STUDY_STUDY_COMPARE_H

#include "base/progress.h"
#include "experiments/results/gate_report.h"
#include "experiments/study/study_results.h"

// Makes all of them, once the steps have run into `folder`: pages compare-NAME.html, and an object
// each appended to results->comparisons. What their gates come to goes to the report under the
// comparison's name (NULL: nothing is judged).
int study_compare_all(struct study_results *results, const struct run_folder *folder,
                      struct gate_report *gates, struct progress *progress, struct error *err);

#endif
