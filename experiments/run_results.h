// SPDX-License-Identifier: MIT
//
// From a run folder's data to what people and scripts look at: run.db, report.html, summary.json,
// and the summary on the terminal.
#ifndef EXPERIMENTS_RUN_RESULTS_H
#define EXPERIMENTS_RUN_RESULTS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/progress.h"
#include "experiments/gate_report.h"
#include "experiments/common/run_folder.h"

struct run_results_settings {
    bool json;                 // summary.json's document on stdout instead of the summary in words
    bool quiet;                // only the report's path
    bool full;                 // more than a screen of summary
    bool silent;               // nothing at all
    struct gate_report *gates; // takes what the experiment's gates come to; NULL: not judged
    struct progress *progress;
};

// Analyses the folder, writes the three files (summary.json last: its being there says the run is
// whole) and prints. *available: false when the verdict is "N/A".
int run_results_write(const struct run_folder *folder, const struct run_results_settings *settings,
                      bool *available, struct error *err);

#endif
