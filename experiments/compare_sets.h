// SPDX-License-Identifier: MIT
//
// `taillight compare` where repetitions or gates are concerned: two sets of runs, the gates, and
// what they come to.
#ifndef EXPERIMENTS_COMPARE_SETS_H
#define EXPERIMENTS_COMPARE_SETS_H

#include "analysis/compare/set_compare.h"
#include "experiments/gate_report.h"

struct compare_sets_options {
    const struct diagnosis_slice *slice; // of causes' gates, NULL: the candidate's own
    struct gate_report_options report;
    bool json;
    bool quiet;
    bool gates_only; // the runs themselves are compared elsewhere
};

// The gates of a file, or those that the candidate's experiment has. The caller frees either way.
int compare_sets_gates(const char *file, const char *candidate, struct gate_array *out,
                       struct error *err);

// What the run's own diagnosis looks at.
int compare_sets_slice(const char *candidate, struct diagnosis_slice *out, struct error *err);

// Compares, judges, prints. *document: with json the comparison, or with gates_only {}, each with
// `gates`; NULL without; the caller's. Returns an exit code, or a negative error kind.
int compare_sets(char *const folders[COMPARE_SIDES], const struct gate_array *gates,
                 const struct compare_sets_options *options, json_t **document, struct error *err);

#endif
