// SPDX-License-Identifier: MIT
//
// Turns the data of a run folder into what people and scripts look at: run.db, report.html,
// summary.json, and the summary on the terminal.
#ifndef EXPERIMENTS_RESULTS_RUN_RESULTS_H
#define EXPERIMENTS_RESULTS_RUN_RESULTS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/array.h"
#include "base/error.h"
#include "base/progress.h"
#include "experiments/results/gate_report.h"
#include "experiments/common/run_folder.h"

struct run_results_settings {
    bool json;   // summary.json's document on stdout instead of the summary in words
    bool quiet;  // only the report's path
    bool full;   // all of the summary
    bool silent; // nothing at all
    struct gate_report
        *gates; // gets the results of the experiment's gates; NULL: they are not judged
    struct progress *progress;
};

// Prepares what is kept of runs of the experiment: a set for each of its loads. path: the runs'
// folder, for the words of a comparison; NULL: none.
int run_results_keep(const struct experiment *experiment, const char *path,
                     struct run_set_array *kept, struct error *err);

// Analyzes the folder, writes the three files and prints. summary.json is written last, so that its
// presence shows that the run is complete. *available: false when the verdict is "N/A". kept,
// which run_results_keep has prepared, gets what comparisons and gates need of each load, if slices
// are wanted of it: the run is not analyzed again for them.
int run_results_write(const struct run_folder *folder, const struct run_results_settings *settings,
                      struct run_set_array *kept, bool *available, struct error *err);

// What a load of the run (NULL: the first or only one) says of itself, load.json, and what was
// found of it, summary.json. The caller owns both; on failure neither is there.
int run_results_read(const struct run_folder *folder, const char *load, json_t **measured,
                     json_t **found, struct error *err);

struct latency_array ARRAY_OF(double);

// Appends the latency of every scheduled request of the run: in us from the intended instant,
// +infinity where no reply came. load: which of several (NULL: the first); tsc_hz: of its
// load.json.
int run_latencies_add(const struct run_folder *folder, const char *load, double tsc_hz,
                      struct latency_array *out, struct error *err);

#endif
