// SPDX-License-Identifier: MIT
//
// An experiment several times: each repetition a whole run, with hosts, a server and a dataset of
// its own, in a folder of its own below the experiment's. What they come to together: percentiles
// over the pooled requests, and how far the repetitions are apart (loadgen/method/between_runs.h).
#ifndef EXPERIMENTS_STUDY_REPETITIONS_H
#define EXPERIMENTS_STUDY_REPETITIONS_H

#include <stdbool.h>

#include "base/error.h"
#include "experiments/plan/experiment.h"
#include "experiments/run/run.h"
#include "experiments/results/run_results.h"

// Runs them into repetition-1, repetition-2, ... below the settings' folder, writes
// repetitions.json (docs/formats.md) there, and prints it or what it says. The first repetition has
// the experiment's seed, the others seeds that follow from it; the experiment is left with the
// last. *available: false when a repetition has no verdict. One that fails ends them all.
int repetitions_run(struct experiment *experiment, const struct run_settings *settings,
                    const struct run_results_settings *results, bool *available, struct error *err);

#endif
