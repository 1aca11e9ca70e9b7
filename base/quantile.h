// SPDX-License-Identifier: MIT
//
// Exact quantiles of a sorted sample, and their distribution-free confidence intervals by order
// statistics. Le Boudec, "Performance Evaluation of Computer and Communication Systems" (EPFL
// Press 2010), §2.2.2 and appendix A; Lancet §4.3 uses the same intervals.
#ifndef BASE_QUANTILE_H
#define BASE_QUANTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quantile_interval {
    bool known; // false: too few samples to bound this quantile on both sides
    double low, high;
};

// The q-quantile (0 <= q <= 1) of `count` ascending values: the smallest value with at least a
// fraction q of the sample at or below it (no interpolation: a value that was seen). NaN when
// empty.
double quantile_sorted(const double *sorted, size_t count, double q);

// Whether so many values are enough to speak of that quantile: one at least lies beyond it, unless
// it is the greatest.
bool quantile_is_seen(size_t count, double q);

// The value that was found for that quantile, or NaN if so many values are not enough to speak of
// it. An infinite one (never answered) is known from fewer.
double quantile_if_seen(double value, size_t count, double q);

// The index of that value, 0 to count - 1. count must not be 0.
size_t quantile_rank(size_t count, double q);

// An interval that holds the true q-quantile with at least the given confidence (0.95), from the
// binomial distribution of ranks. Assumes independent samples.
struct quantile_interval quantile_interval_sorted(const double *sorted, size_t count, double q,
                                                  double confidence);

// The indices of the interval's ends, low before high. False: too few samples.
bool quantile_interval_ranks(size_t count, double q, double confidence, size_t ranks[2]);

// How many values are greater than that.
size_t count_above(const double *values, size_t count, double limit);

// Sorts ascending; +infinity last. Needs 16 bytes per value meanwhile; without that memory it sorts
// in place, an order of magnitude slower.
void quantile_sort(double *values, size_t count);

// Fills order[i] with the index of the i-th smallest value; equal ones keep their order. count: at
// most 2^32. False: no memory for 24 bytes per value.
bool quantile_order(const double *values, size_t count, uint32_t *order);

// Finds a few order statistics without sorting all values: found[i] is exactly what sorting would
// put at index ranks[i] (each below count), in about a fifth of the time. work: room for all
// values, or the values array itself, which is then overwritten.
void quantile_select(const double *values, size_t count, const size_t *ranks, size_t rank_count,
                     double *work, double *found);

// quantile_sorted and quantile_interval_sorted for values in any order; `work` as for
// quantile_select.
double quantile_of(const double *values, size_t count, double q, double *work);
// Two at once; NaN when empty.
void quantile_pair_of(const double *values, size_t count, const double quantiles[2], double *work,
                      double found[2]);
struct quantile_interval quantile_interval_of(const double *values, size_t count, double q,
                                              double confidence, double *work);

#endif
