// SPDX-License-Identifier: MIT
//
// The runs of one build against those of another (docs/gates.md): every percentile's shift with its
// interval, and what made it, from the components of the messages around it; and slice by slice
// what the messages spent their time on. A side is one run or several: with several the intervals
// include the differences between runs, with one they come from the blocks of time within it.
//
// The candidate may also be without a base, for gates that need none and for the history.
#ifndef ANALYSIS_COMPARE_COMPARISON_H
#define ANALYSIS_COMPARE_COMPARISON_H

#include "analysis/compare/cause_shift.h"
#include "analysis/compare/gate.h"
#include "analysis/compare/percentile_shift.h"
#include "analysis/compare/run_profile.h"

#define COMPARE_CONFIDENCE 0.99

// A shift in a sentence: "p99.9 +38 % [+21, +57]: nginx (A) +120 us on 4.1 % of messages".
enum { SHIFT_WORDS_BYTES = 600 };

struct compared_percentile {
    char name[GATE_NAME_BYTES]; // "p99.9"
    struct percentile_shift shift;
    size_t around; // of the slices: the messages around it
    char verdict[SHIFT_WORDS_BYTES];
};
struct compared_percentile_array ARRAY_OF(struct compared_percentile);

struct compared_slice {
    struct slice_shift shift;
    char verdict[SHIFT_WORDS_BYTES];
};
struct compared_slice_array ARRAY_OF(struct compared_slice);

struct comparison {
    bool has_base;
    const struct run_set *sides[COMPARE_SIDES]; // whose slices include the comparison's
    struct run_set read[COMPARE_SIDES];         // by comparison_make, empty where it did not
    struct latency_set *latencies[COMPARE_SIDES];
    struct diagnosis_slice_array slices; // without duplicates; those asked for come first
    size_t asked;                        // how many slices were asked for
    size_t gate_slice;                   // index of the slice that gates of causes refer to
    struct compared_slice_array shifts;  // one per slice
    struct compared_percentile_array percentiles; // the usual percentiles, and those of the gates
    char warning[1200]; // why the comparison is doubtful; empty: it is not
};

struct comparison_request {
    const char *base, *candidate;     // folders of a run or of repetitions; base NULL: none
    const char *loads[COMPARE_SIDES]; // by name, which of several; NULL: the first or only one
    const struct diagnosis_slice_array *slices; // NULL or none: of two sides p99-100 and p45-55
    const struct gate_array *gates;             // NULL: none
    const struct diagnosis_slice *gate_slice;   // NULL: that of the candidate's own diagnosis
    const char *categories;                     // as of run_analyze(), for all runs; NULL: none
};

// Compares the sides, which the caller has set, in the slices and percentiles chosen. The sides
// belong to the caller and must live as long. After this, and after the functions below, the caller
// frees with comparison_free, whatever happens.
int comparison_finish(struct comparison *comparison, struct error *err);

// For runs that are yet to be analyzed, in two steps that need no folders if the request has the
// slice of the gates: has the sides keep what will be compared (base NULL: none) ...
int comparison_want(const struct comparison_request *request, struct run_set *base,
                    struct run_set *candidate, struct error *err);
// ... and compares them once they have their runs.
int comparison_of_sets(struct comparison *comparison, const struct comparison_request *request,
                       const struct run_set *base, const struct run_set *candidate,
                       struct error *err);

// All of it: plans, analyzes each run once, keeps what is compared, and compares.
int comparison_make(struct comparison *comparison, const struct comparison_request *request,
                    struct progress *progress, struct error *err);
void comparison_free(struct comparison *comparison);

// What a run of a side spent its time on in one of the comparison's slices.
const struct slice_profile *comparison_profile(const struct comparison *comparison, int side,
                                               size_t run, size_t slice);

// Whether each side is one run.
bool comparison_is_single(const struct comparison *comparison);

// Whether anything at all could be compared: of two runs a slice that was asked for, of several a
// percentile as well.
bool comparison_any_known(const struct comparison *comparison);

// Whether a side has a load that cannot be trusted, so that nothing follows from the comparison.
bool comparison_is_doubtful(const struct comparison *comparison);

#endif
