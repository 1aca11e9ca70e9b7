// SPDX-License-Identifier: MIT
//
// The runs of one build: a run folder, or the folder of an experiment's repetitions
// (docs/formats.md: repetition-1, repetition-2, ...), read for a comparison.
#ifndef ANALYSIS_COMPARE_RUN_SET_H
#define ANALYSIS_COMPARE_RUN_SET_H

#include "analysis/compare/percentile_shift.h"
#include "analysis/compare/run_profile.h"
#include "base/progress.h"

struct run_profile_array ARRAY_OF(struct run_profile);

struct run_set {
    char path[4096];
    char name[128];                     // of the experiment
    struct latency_run_array latencies; // one per run
    struct run_profile_array profiles;  // one per run, with the slices asked for
    double offered_rate, achieved_rate; // means over the runs
    size_t inconclusive;                // number of runs that had such a load
    char reason[200];                   // of the first of them
};

// Whether the folder is a run's own and not one of repetitions.
bool run_set_is_run(const char *path);

// The folder of a repetition, counted from 0.
char *run_set_folder(const char *path, size_t index, char *out, size_t out_bytes);

// The slices of the runs' own diagnosis.
int run_set_own_slice(const char *path, struct diagnosis_slice *out, struct error *err);

// Adds an analyzed run. -ERROR_FAILED: no memory.
int run_set_add(struct run_set *set, const struct run_analysis *run, struct error *err);

// Analyzes each run once, one after the other, so that one at a time is in memory. categories: as
// of run_analyze(). Not a run or damaged: ERROR_INPUT that names the folder. The caller frees
// either way.
int run_set_read(const char *path, const struct diagnosis_slice_array *slices,
                 const char *categories, struct progress *progress, struct run_set *out,
                 struct error *err);
void run_set_free(struct run_set *set);

#endif
