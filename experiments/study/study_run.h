// SPDX-License-Identifier: MIT
//
// Runs a study (experiments/definition/study.h): each step is a whole run in a folder of its own. A
// round runs every step once. After the last round the steps are compared and the results written
// (experiments/study/study_results.h).
#ifndef EXPERIMENTS_STUDY_STUDY_RUN_H
#define EXPERIMENTS_STUDY_STUDY_RUN_H

#include "experiments/run/run.h"
#include "experiments/results/run_results.h"
#include "experiments/definition/study.h"

// Runs into <folder>/<step>, or with rounds into <folder>/<step>/repetition-N. The first round has
// the seed of the step's file; the seeds of the others are derived from it, so that steps of the
// same seed share one in every round. The first failure ends all. *available: false when a run that
// was captured has no verdict.
int study_run(struct study *study, const struct run_settings *settings,
              const struct run_results_settings *results, bool *available, struct error *err);

#endif
