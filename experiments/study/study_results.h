// SPDX-License-Identifier: MIT
//
// The results of a study: for each step the latency percentiles of its runs, their median and how
// much they differ; the causes of its slow requests; the results of the comparisons. They are
// written as study.json for scripts, results.md for a README and the terminal, cdf.svg and
// report.html to look at.
#ifndef EXPERIMENTS_STUDY_STUDY_RESULTS_H
#define EXPERIMENTS_STUDY_STUDY_RESULTS_H

#include <jansson.h>
#include <stdio.h>

#include "experiments/common/run_folder.h"
#include "experiments/results/run_results.h"
#include "experiments/definition/study.h"

enum { STUDY_QUANTILES = 6 }; // p25, p50, p90, p99, p99.9, p99.99

// One run of a step's load.
struct study_run_result {
    double latency_us[STUDY_QUANTILES]; // +infinity where unanswered requests reach it
};
struct study_run_result_array ARRAY_OF(struct study_run_result);

enum { STUDY_LABEL_BYTES = 200 };

// All runs of one load of a step.
struct study_load {
    const char *name;              // NULL: the first or only one
    char label[STUDY_LABEL_BYTES]; // the step; among several loads "STEP, load `NAME`"
    struct study_run_result_array runs;
    struct latency_array latencies;    // of all runs, for the curve; sorted by study_results_write
    double pooled_us[STUDY_QUANTILES]; // of all runs (NaN: too few), and their 95 % intervals
    struct quantile_interval pooled_interval[STUDY_QUANTILES];
    json_t *load;    // load.json of the first run
    json_t *summary; // summary.json of the first run
};
struct study_load_array ARRAY_OF(struct study_load);

// All runs of a step. A step that is a study itself has only its name and folder here.
struct study_result {
    const struct study_step *step;
    char folder[80];               // below the study's; of the first round's run
    struct study_load_array loads; // the first's first
    struct run_set_array kept;     // of all runs, for the gates and the comparisons, a set a load
};
struct study_result_array ARRAY_OF(struct study_result);

struct study_results {
    const struct study *study;
    struct study_result_array steps;
    json_t *gates;       // those of the steps and of the comparisons, as in gates.json
    json_t *comparisons; // an object each (docs/formats.md: study.json)
};

// Makes room for the loads of the step, which is set.
int study_result_init(struct study_result *result, struct error *err);

// Whether every load of its runs can be trusted.
bool study_result_can_be_trusted(const struct study_result *result);

// Adds the results of a run from its folder.
int study_result_add_run(struct study_result *result, const struct run_folder *folder,
                         struct error *err);

// Writes the four files.
int study_results_write(struct study_results *results, const struct run_folder *folder,
                        struct error *err);
void study_results_free(struct study_results *results);

// The same as results.md.
void study_results_print(const struct study_results *results, FILE *out);

#endif
