// SPDX-License-Identifier: MIT
//
// One run of an experiment, from an empty folder to the captured data: hosts, server, dataset,
// capture, load with its neighbours. However it ends, everything is undone. The data is analyzed by
// experiments/results/run_results.h.
#ifndef EXPERIMENTS_RUN_RUN_H
#define EXPERIMENTS_RUN_RUN_H

#include <stdio.h>

#include "base/error.h"
#include "base/progress.h"
#include "experiments/common/run_folder.h"
#include "experiments/plan/experiment.h"

struct run_orders;

struct run_settings {
    const char *folder; // where to, NULL: runs/<name>-<UTC time>
    struct progress *progress;
    FILE *dry; // not NULL: do nothing, write there every command and setting there would be
    struct run_orders *orders;  // who makes the run (divided_run.h); NULL: this process itself
    const struct person *owner; // whose its folder and its load are; NULL: whoever runs it
    int spared;                 // a child of this process that outlives the run; 0: none
};

// Runs it into *folder. Also on failure the folder keeps what was written until then (never a
// summary.json), and nothing is left running or changed. SIGINT and SIGTERM end the run as
// "interrupted".
int run_experiment(const struct experiment *experiment, const struct run_settings *settings,
                   struct run_folder *folder, struct error *err);

// Makes the folder that several runs are in (run_folder_make).
int run_make_folder(const char *name, const struct run_settings *settings,
                    struct run_folder *folder, struct error *err);

#endif
