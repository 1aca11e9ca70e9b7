// SPDX-License-Identifier: MIT
//
// Two sets of runs against each other (design: compare and gates): every percentile's shift with
// its interval, and for each what made it, from the components of the messages around it:
//
//     p99.9 +38 % [+21, +57]: nginx (A) +120 us on 4.1 % of messages
//
// A set may also stand alone, for gates that need no base.
#ifndef ANALYSIS_COMPARE_SET_COMPARE_H
#define ANALYSIS_COMPARE_SET_COMPARE_H

#include <jansson.h>
#include <stdio.h>

#include "analysis/compare/cause_shift.h"
#include "analysis/compare/gate.h"
#include "analysis/compare/percentile_shift.h"
#include "analysis/compare/run_set.h"

#define SET_CONFIDENCE 0.99

struct set_percentile {
    char name[GATE_NAME_BYTES]; // "p99.9"
    struct percentile_shift shift;
    struct slice_shift around; // the messages around it
    char verdict[600];
};
struct set_percentile_array ARRAY_OF(struct set_percentile);

struct set_comparison {
    bool has_base;
    struct run_set sides[COMPARE_SIDES];
    struct diagnosis_slice_array slices; // the first is the gates' causes', then one per percentile
    char slice_words[96];
    struct set_percentile_array percentiles;
    struct slice_shift slice; // that causes' gates are about
    char warning[400];        // what makes the comparison doubtful; empty: nothing
};

// The percentiles of every comparison and those of the gates, and the slice of causes' gates. The
// caller frees with set_comparison_free, whatever happens.
int set_comparison_init(struct set_comparison *comparison, const struct gate_array *gates,
                        const struct diagnosis_slice *slice, struct error *err);

// Reads the sides and compares them; base NULL: the candidate alone.
int set_compare(struct set_comparison *comparison, const char *base, const char *candidate,
                struct progress *progress, struct error *err);
void set_comparison_free(struct set_comparison *comparison);

// In words, and for scripts (docs/compare-json.md). The caller owns the document.
void set_comparison_text(const struct set_comparison *comparison, FILE *out);
json_t *set_comparison_json(const struct set_comparison *comparison);

#endif
