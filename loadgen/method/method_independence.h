// SPDX-License-Identifier: MIT
//
// Are samples independent of those before them? Spearman's rank autocorrelation at the first few
// lags, with its significance (Lancet §4.3). Requests queued behind one another are not: then only
// every n-th sample is kept, with growing n, until the rest is independent, because the interval of
// a percentile is only right for independent samples.
#ifndef LOADGEN_METHOD_METHOD_INDEPENDENCE_H
#define LOADGEN_METHOD_METHOD_INDEPENDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { INDEPENDENCE_LAGS = 3 };

struct rank_correlation {
    double rho; // ties take the mean of their ranks; NaN: all values are alike, or too few
    double p;   // two-sided, Student's t with count - 2 degrees of freedom
};

// Fills in twice the rank of each value, so that ties can have the mean of theirs: 2, 4, ... for
// values that all differ. count: at most a million. False: out of memory.
bool rank_values(const double *values, size_t count, int32_t *ranks);

// Spearman's correlation of the values whose ranks are x[i] and y[i]. Exact: sums of whole numbers.
struct rank_correlation rank_correlate(const int32_t *x, const int32_t *y, size_t count);

// Of values[i] with values[i + lag]. ranks: of all `count` values; from them follow those among the
// values without the last, and without the first. work: room for 2 * count. lag: at most
// INDEPENDENCE_LAGS.
struct rank_correlation rank_autocorrelate(const int32_t *ranks, size_t count, size_t lag,
                                           int32_t *work);

struct independence {
    bool judged;      // false: too few samples
    bool independent; // with the thinning below
    // every thinning-th sample is kept; 1: all
    size_t thinning;
    size_t kept;                                          // how many that leaves
    struct rank_correlation unthinned[INDEPENDENCE_LAGS]; // lag 1, 2, 3
    struct rank_correlation thinned[INDEPENDENCE_LAGS];
};

// Finds the smallest thinning that leaves the `count` values (in time order; infinite ones are
// ranked last) independent, and at least `least` of them. If there is none, the greatest that
// leaves `least` is reported. `turn`: how many connections take turns; thinnings in step with them
// would only see some of the connections and are skipped. ERROR_FAILED: out of memory.
int independence_judge(const double *values, size_t count, size_t least, size_t turn,
                       struct independence *result, struct error *err);

// Copies every `thinning`-th value to `kept` (room for count / thinning + 1). Returns how many.
size_t independence_thin(const double *values, size_t count, size_t thinning, double *kept);

// How far a long series is thinned where a test needs no more of it, whatever the dependence: so
// that many values, and many beyond that percentile, are left. 1: not at all. Odd, since
// connections, which take turns, often come in even numbers.
size_t independence_evidence(size_t count, double q);

// How many independent values a few neighbouring residuals (of mean 0) are worth for the error of
// their mean, going by their correlation at lag 1, whose bias in so short a series is made good
// (Kendall, "Note on bias in the estimation of autocorrelation", Biometrika 41, 1954).
double independence_worth(const double *residuals, size_t count);

#endif
