// SPDX-License-Identifier: MIT
//
// Exact quantiles of a sorted sample, and their distribution-free confidence intervals by order
// statistics. Le Boudec, "Performance Evaluation of Computer and Communication Systems" (EPFL
// Press 2010), §2.2.2 and appendix A; Lancet §4.3 uses the same intervals.
#ifndef BASE_QUANTILE_H
#define BASE_QUANTILE_H

#include <stdbool.h>
#include <stddef.h>

struct quantile_interval {
    bool known; // false: too few samples to bound this quantile on both sides
    double low, high;
};

// The q-quantile (0 <= q <= 1) of `count` ascending values: the smallest value with at least a
// fraction q of the sample at or below it (no interpolation: a value that was seen). NaN when
// empty.
double quantile_sorted(const double *sorted, size_t count, double q);

// An interval that holds the true q-quantile with at least the given confidence (0.95), from the
// binomial distribution of ranks. Assumes independent samples.
struct quantile_interval quantile_interval_sorted(const double *sorted, size_t count, double q,
                                                  double confidence);

// Sorts ascending; +infinity last. Takes 16 bytes a value meanwhile; where there is no memory for
// that it sorts in place, an order of magnitude slower.
void quantile_sort(double *values, size_t count);

#endif
