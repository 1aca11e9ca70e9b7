// SPDX-License-Identifier: MIT
//
// An experiment file with a matrix: every configuration a whole run (or its repetitions) in a
// folder of its own below the experiment's, and one table of what they came to.
#ifndef EXPERIMENTS_STUDY_MATRIX_H
#define EXPERIMENTS_STUDY_MATRIX_H

#include <stdbool.h>

#include "base/error.h"
#include "experiments/definition/experiment_set.h"
#include "experiments/run/run.h"
#include "experiments/results/run_results.h"

// Runs one experiment as a person would: into the settings' folder, results written and printed.
// *available: false when it has no verdict.
typedef int (*matrix_run_one)(struct experiment *experiment, const struct run_settings *settings,
                              const struct run_results_settings *results, bool *available,
                              struct error *err);

// Runs them into configuration-1, configuration-2, ... below the settings' folder, writes
// matrix.json (docs/formats.md) there, and prints it or the table. One that fails ends them all.
// *available: false when a configuration that was watched has no verdict. One whose capture is
// optional and cannot be had is skipped, with the reason.
int matrix_run(struct experiment_set *set, matrix_run_one run_one,
               const struct run_settings *settings, const struct run_results_settings *results,
               bool *available, struct error *err);

#endif
