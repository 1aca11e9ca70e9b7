// SPDX-License-Identifier: MIT
//
// Runs an experiment several times. Each repetition is a whole run, with hosts, a server and a
// dataset of its own, in a folder of its own below the experiment's. The common results are
// percentiles over the pooled requests, and how much the repetitions differ
// (loadgen/method/between_runs.h).
#ifndef EXPERIMENTS_STUDY_REPETITIONS_H
#define EXPERIMENTS_STUDY_REPETITIONS_H

#include <stdbool.h>

#include "base/error.h"
#include "experiments/plan/experiment.h"
#include "experiments/run/run.h"
#include "experiments/results/run_results.h"

// Runs the repetitions into repetition-1, repetition-2, ... below the settings' folder, writes
// repetitions.json (docs/formats.md) there, and prints it or a summary. The first repetition has
// the experiment's seed, the seeds of the others are derived from it; the experiment is left with
// the last seed. The first failure ends them all. *available: false when a repetition has no
// verdict.
int repetitions_run(struct experiment *experiment, const struct run_settings *settings,
                    const struct run_results_settings *results, bool *available, struct error *err);

#endif
