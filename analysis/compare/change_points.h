// SPDX-License-Identifier: MIT
//
// Where a series changed its level: E-divisive (Matteson & James, "A Nonparametric Approach for
// Multiple Change Point Analysis of Multivariate Data", JASA 109(505), 2014), with the exponent 1,
// with which it finds changes of the mean. Segments are split where the energy distance between
// what comes before and after is largest, one split at a time, while a permutation test (of the
// values within their segments) says that this is rarely reached by chance.
#ifndef ANALYSIS_COMPARE_CHANGE_POINTS_H
#define ANALYSIS_COMPARE_CHANGE_POINTS_H

#include <stddef.h>

#include "base/array.h"

enum { CHANGE_POINT_LEAST = 3, CHANGE_POINT_PERMUTATIONS = 499, CHANGE_POINT_SEED = 20261 };
#define CHANGE_POINT_SIGNIFICANCE 0.01

struct change_point {
    size_t first;         // of the new level
    double before, after; // medians of the segments on either side
    double p;
};
struct change_point_array ARRAY_OF(struct change_point);

// In order. Each level holds CHANGE_POINT_LEAST values at least; with fewer than twice as many
// there is none to be found. O(permutations * count^2). -1: no memory.
int change_points_find(const double *values, size_t count, struct change_point_array *out);

#endif
