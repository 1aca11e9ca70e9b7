// SPDX-License-Identifier: MIT
//
// The functions of a slice's messages, for the comparison of runs: how long each took itself,
// without what it called, so that a message's functions add up to the time it was in any.
#ifndef ANALYSIS_RUN_PROFILE_FUNCTIONS_H
#define ANALYSIS_RUN_PROFILE_FUNCTIONS_H

#include "analysis/compare/run_compare.h"
#include "analysis/diagnosis/decompose.h"

struct function_profiler {
    const struct decomposer *decomposer;
    uint32_t *by_name; // (name, role) to function plus 1; 0: not met yet
    double *own;       // by path, of the message at hand; 0 between messages
    double *sums;      // by function, the same
    size_t path_capacity, sum_capacity;
};

// A zeroed profiler needs nothing but its decomposer, which must outlive it.
void function_profiler_free(struct function_profiler *profiler);

// Adds what the message the decomposer has just taken apart spent in functions; out is a profile of
// functions. -1: no memory.
int function_profiler_add(struct function_profiler *profiler, const struct path_share_array *paths,
                          uint32_t block, struct slice_profile *out);

#endif
