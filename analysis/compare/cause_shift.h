// SPDX-License-Identifier: MIT
//
// How much the components of the latency of a slice differ between two sets of runs: what each
// takes of a message on average (these add up to the latency, so their differences add up to its
// difference), on what share of the messages it takes any, and how long there.
//
// Two questions of every cause. Did its mean surely move? Means add up, but where a slice mixes
// kinds of messages (slow by themselves, or behind such a one) they move with the mixture of the
// day. So also: does it surely take another time of a message than it did? Then the medians over
// the messages that have it differ by more than they scatter, which the mixture leaves alone. That
// is asked where at least half of both sides' messages have the cause.
#ifndef ANALYSIS_COMPARE_CAUSE_SHIFT_H
#define ANALYSIS_COMPARE_CAUSE_SHIFT_H

#include "analysis/compare/resample.h"
#include "analysis/compare/run_compare.h"
#include "base/array.h"
#include "base/error.h"

struct cause_shift {
    char name[64];
    enum core_role role;
    bool explains;
    double mean_ns[COMPARE_SIDES];   // of a message of the slice
    double share[COMPARE_SIDES];     // of messages that have more of it than the granularity
    double median_ns[COMPARE_SIDES]; // over those; NaN: none
    struct resample_spread spread[COMPARE_SIDES]; // of the means
    double difference_ns;                         // of the means
    struct resample_interval interval;
    double median_difference_ns; // NaN: not asked
    struct resample_interval median_interval;
};
struct cause_shift_array ARRAY_OF(struct cause_shift);

struct slice_profile_list ARRAY_OF(const struct slice_profile *);

struct slice_shift {
    bool available;
    char reason[240];
    uint64_t messages[COMPARE_SIDES];
    size_t runs[COMPARE_SIDES];      // that have a profile
    double mean_ns[COMPARE_SIDES];   // latency
    struct cause_shift_array causes; // largest difference first, whatever its sign
};

// One profile of the same slice per run; those that are not available are left out. An empty base
// gives the candidate alone: differences are NaN. -ERROR_FAILED: no memory. The caller frees either
// way.
int slice_shift(const struct slice_profile_list sides[COMPARE_SIDES], double confidence,
                struct slice_shift *out, struct error *err);
void slice_shift_free(struct slice_shift *shift);

struct named_cause {
    const struct cause_shift *cause;
    bool by_median; // its mean did not surely move, its median did
};

// What is to be named: the causes that surely moved up (or down), by at least a twentieth of what
// the latency moved, means first. At most `most`; returns how many.
size_t slice_shift_named(const struct slice_shift *shift, bool up, struct named_cause *out,
                         size_t most);

// "nginx (A)".
char *cause_shift_name(const struct cause_shift *cause, char *out, size_t out_bytes);

#endif
