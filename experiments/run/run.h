// SPDX-License-Identifier: MIT
//
// One run of an experiment, from an empty folder to the captured data: hosts, server, dataset,
// capture, load with its neighbours, and everything undone, whatever ends it. What the data means
// is experiments/results/run_results.h's part.
#ifndef EXPERIMENTS_RUN_RUN_H
#define EXPERIMENTS_RUN_RUN_H

#include <stdio.h>

#include "base/error.h"
#include "base/progress.h"
#include "experiments/plan/experiment.h"
#include "experiments/run/run_outcome.h"

struct run_settings {
    const char *folder; // where to, NULL: runs/<name>-<UTC time>
    struct progress *progress;
    FILE *dry; // do nothing, and write what would be done there: every command and every setting
};

// Runs it. On failure, too, the folder is as far as it came (never with a summary.json), outcome is
// the caller's to free, and nothing runs or stays changed. SIGINT and SIGTERM end the run as
// "interrupted".
int run_experiment(const struct experiment *experiment, const struct run_settings *settings,
                   struct run_outcome *outcome, struct error *err);
void run_outcome_free(struct run_outcome *outcome);

#endif
