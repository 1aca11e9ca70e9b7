// SPDX-License-Identifier: MIT
//
// Phase 3 (NSight §4.2, §5.2): which functions deviate within a component's time, and by how much.
// A function that is slower is not reported when functions it calls explain at least 80 % of its
// deviation. A function that is unexpected, or called more often, is reported itself, whatever it
// calls.
#ifndef ANALYSIS_DIAGNOSIS_FUNCTIONS_H
#define ANALYSIS_DIAGNOSIS_FUNCTIONS_H

#include "analysis/diagnosis/decompose.h"
#include "analysis/diagnosis/diagnosis.h"
#include "analysis/diagnosis/reference.h"

#define NESTED_EXPLAINS 0.8

// Beyond this many standard deviations something is unusual. Durations are lognormal rather than
// normal: with a limit of five, one of a hundred quiet servers would be called unusual by chance
// (`make bench BENCH=diagnosis`).
#define UNUSUAL_SCATTER 6

struct function_cause {
    uint32_t path;
    enum function_anomaly anomaly;
    double ns;
};
struct function_cause_array ARRAY_OF(struct function_cause);

struct function_analysis {
    const struct call_paths *paths;
    const struct reference *reference;
    double granularity_ns;
    // The message at hand: the functions of its shares, as a tree.
    const struct path_share_array *shares;
    // Numbers of shares are their index + 1; 0: none.
    uint32_t *first;    // by number: its first callee; first[0]: the first outermost function
    uint32_t *next;     // by index: its caller's next callee
    uint32_t *share_of; // by path
    size_t share_capacity, path_capacity;
    struct function_cause_array found;
    bool out_of_memory;
};

void function_analysis_init(struct function_analysis *analysis, const struct call_paths *paths,
                            double granularity_ns);
void function_analysis_fini(struct function_analysis *analysis);

// Begins with another message. shares ascend by path. -1: no memory.
int function_analysis_begin(struct function_analysis *analysis,
                            const struct path_share_array *shares,
                            const struct reference *reference);

// Puts the functions of one component that deviate into analysis->found; their sum, which is
// returned, is `budget_ns` at most.
double function_analysis_explain(struct function_analysis *analysis, uint32_t component,
                                 double budget_ns);

#endif
