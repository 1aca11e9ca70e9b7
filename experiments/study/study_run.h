// SPDX-License-Identifier: MIT
//
// Runs a study (experiments/definition/study.h): every step a whole run in a folder of its own, the
// rounds in turn, then the comparisons; and writes what they came to
// (experiments/study/study_results.h).
#ifndef EXPERIMENTS_STUDY_STUDY_RUN_H
#define EXPERIMENTS_STUDY_STUDY_RUN_H

#include "experiments/run/run.h"
#include "experiments/results/run_results.h"
#include "experiments/definition/study.h"

// Into <folder>/<step>, with rounds <folder>/<step>/repetition-N. The seed of a round is that of
// the step's file in the first, and follows from it in the others, the same for steps of one seed.
// One that fails ends them all. *available: false when a run that was captured has no verdict.
int study_run(struct study *study, const struct run_settings *settings,
              const struct run_results_settings *results, bool *available, struct error *err);

#endif
