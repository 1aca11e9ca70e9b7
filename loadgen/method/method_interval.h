// SPDX-License-Identifier: MIT
//
// How sure is a percentile? Its interval by order statistics, how many independent samples a
// narrower one would take, and whether the tail is too heavy for it ever to get there.
#ifndef LOADGEN_METHOD_METHOD_INTERVAL_H
#define LOADGEN_METHOD_METHOD_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/quantile.h"

struct percentile_interval {
    size_t count; // of samples
    // number of independent samples that would give the same certainty
    double worth;
    double value;                      // the percentile; may be +infinity
    struct quantile_interval interval; // base/quantile.h, widened by the clustering
    double width;                      // NaN: not bounded on both sides; may be +infinity
    double tail_index;                 // Hill's estimate over the tail beyond; NaN: unknown
    double shrinking;                  // d log width / d log samples: -0.5 in theory; NaN: unknown
    double clustering; // how much more the samples beyond the percentile come in clusters than
                       // independent ones: variance over binomial, 1 in theory; NaN: unknown
    double excess;     // the width over that of an exponential distribution; NaN: unknown
    bool heavy;        // infinite variance, a width that does not shrink, or far in excess
};

// For `count` values in time order. The interval comes from all of them: that of independent
// samples, widened by how much the samples come in clusters. How the width shrinks and its excess,
// which shall describe the tail and not the clusters, come from every `thinning`-th value, which
// are independent. ERROR_FAILED: out of memory.
int percentile_interval_take(const double *values, size_t count, size_t thinning, double q,
                             double confidence, struct percentile_interval *result,
                             struct error *err);

// A percentile and how sure it is, without what its tail is like: members of percentile_interval.
struct percentile_estimate {
    double value;
    struct quantile_interval interval;
    double clustering, worth;
};

// The same where the estimate of that percentile of these values is known already; NULL: it is not.
int percentile_interval_judge(const double *values, size_t count, size_t thinning, double q,
                              double confidence, const struct percentile_estimate *known,
                              struct percentile_interval *result, struct error *err);

// Several percentiles of values in time order: the estimates that percentile_interval_take() gives
// each. Room for quantile_count; NaN and not known where there are no values. ERROR_FAILED: out of
// memory.
int percentile_estimates_take(const double *values, size_t count, const double *quantiles,
                              size_t quantile_count, double confidence,
                              struct percentile_estimate *estimates, struct error *err);

// Several percentiles of values in time order, and the intervals that percentile_interval_take()
// gives each: how sure a percentile is stands nowhere else. found and intervals: room for
// quantile_count; NaN and not known where there are no values. ERROR_FAILED: out of memory.
int percentile_intervals_take(const double *values, size_t count, const double *quantiles,
                              size_t quantile_count, double confidence, double *found,
                              struct quantile_interval *intervals, struct error *err);

// How many samples an interval of that width would take, judging by its present width; at least
// what it takes to bound the percentile at all. +infinity: no number is enough.
double percentile_interval_needed(const struct percentile_interval *now, double q,
                                  double confidence, double width);

// The least number of samples that bounds a percentile on both sides.
size_t percentile_interval_least(double q, double confidence);

// Hill's estimate of the tail index alpha (P(X > x) ~ x^-alpha) from the `beyond` greatest of
// the values, in any order: 2 or less means infinite variance. Hill, "A simple general approach to
// inference about the tail of a distribution", Annals of Statistics 3(5), 1975. NaN where the
// values do not allow it (not positive, infinite, or alike). work: room for all of them.
double hill_tail_index(const double *values, size_t count, size_t beyond, double *work);

#endif
