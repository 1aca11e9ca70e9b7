// SPDX-License-Identifier: MIT
//
// What the files that make up run_analyze share: each fills its part of struct run_analysis.
#ifndef ANALYSIS_RUN_INTERNAL_H
#define ANALYSIS_RUN_INTERNAL_H

#include <jansson.h>

#include "analysis/run/run_analysis.h"

// From the lifetimes: counts, rates, latencies and their intervals, stages (run_statistics.c).
// -1: no memory.
int run_statistics(struct run_analysis *run);

// Puts the findings into words: run->findings.verdict (run_verdict.c).
void run_verdict(struct run_analysis *run);

// What a run's diagnoses are made from, but for the share of dropped records (run_analyze.c).
void run_diagnosis_input(const struct run_analysis *run, struct diagnosis_input *out);

// Adds to a diagnosis's part of summary.json what the views found (run_summary_views.c).
void run_summary_add_views(json_t *object, const struct run_analysis *run,
                           const struct diagnosis *diagnosis);

// Writes what the views found into run.db, tables and all (run_database_views.c). -1: failed, the
// database knows why.
struct sqlite3;
int run_database_views(struct sqlite3 *database, const struct run_analysis *run);

#endif
