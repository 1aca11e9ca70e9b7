// SPDX-License-Identifier: MIT
//
// How much a percentile of latency differs between two sets of runs. Percentiles are taken over the
// pooled requests of a side's runs, never averaged; unanswered requests count as +infinity.
//
// Resampling works on counts per block in bins of 1/256 of an octave (0.27 %), interpolated,
// because it needs a percentile thousands of times; the percentiles themselves are exact.
#ifndef ANALYSIS_COMPARE_PERCENTILE_SHIFT_H
#define ANALYSIS_COMPARE_PERCENTILE_SHIFT_H

#include "analysis/compare/resample.h"
#include "base/array.h"
#include "base/error.h"

// One run's latencies in the order of their intended times, ns.
struct latency_run ARRAY_OF(double);
struct latency_run_array ARRAY_OF(struct latency_run);

struct latency_set; // the latencies of a side, prepared for resampling

// All its latencies, ascending.
const double *latency_set_sorted(const struct latency_set *set, size_t *count);

// Copies the runs' latencies. -ERROR_INPUT: a run has no requests.
int latency_set_make(const struct latency_run_array *runs, struct latency_set **out,
                     struct error *err);
void latency_set_free(struct latency_set *set);

struct percentile_shift {
    double quantile;
    double ns[COMPARE_SIDES];
    struct resample_interval ns_interval[COMPARE_SIDES]; // ns
    double shift;                                        // candidate / base - 1: 0.05 is +5 %
    struct resample_interval interval;                   // of the shift
    // Spreads of the natural logarithm, from which intervals of other confidence come.
    struct resample_spread spread[COMPARE_SIDES];
    bool known; // false: too few requests beyond it, or unanswered ones reach it; no interval is
    bool never[COMPARE_SIDES]; // unanswered requests reach it in every run of the side
};

void percentile_shift(const struct latency_set *const sides[COMPARE_SIDES], double quantile,
                      double confidence, struct percentile_shift *out);

// One side alone: fills the members about the candidate.
void percentile_of(const struct latency_set *set, double quantile, double confidence,
                   struct percentile_shift *out);

// The shift's interval of another confidence.
struct resample_interval percentile_shift_interval(const struct percentile_shift *shift,
                                                   double confidence);

#endif
