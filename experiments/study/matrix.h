// SPDX-License-Identifier: MIT
//
// Runs an experiment file with a matrix: each configuration is a whole run (or its repetitions) in
// a folder of its own below the experiment's, and one table shows the results of all. Where a
// configuration is called `baseline`, as in `watched: {baseline: ..., shim: ...}`, the table shows
// what the others cost compared with it: percentiles with their intervals, the server's CPU time,
// and ratios (as Table 2 of NSight). Otherwise it shows latency from the intended time and, beside
// it, from the send time.
#ifndef EXPERIMENTS_STUDY_MATRIX_H
#define EXPERIMENTS_STUDY_MATRIX_H

#include <stdbool.h>

#include "base/error.h"
#include "experiments/definition/experiment_set.h"
#include "experiments/run/run.h"
#include "experiments/results/run_results.h"

// Runs one experiment into the settings' folder, writes its results and prints them. *available:
// false when it has no verdict.
typedef int (*matrix_run_one)(struct experiment *experiment, const struct run_settings *settings,
                              const struct run_results_settings *results, bool *available,
                              struct error *err);

// Runs the configurations into configuration-1, configuration-2, ... below the settings' folder,
// writes matrix.json (docs/formats.md) there, and prints it or the table. The first failure ends
// them all; but a configuration whose capture is optional and not possible here is skipped, with
// the reason. *available: false when a configuration that was captured has no verdict.
int matrix_run(struct experiment_set *set, matrix_run_one run_one,
               const struct run_settings *settings, const struct run_results_settings *results,
               bool *available, struct error *err);

#endif
