// SPDX-License-Identifier: MIT
//
// Do values come from a stated distribution? Anderson and Darling's A-squared with its p-value, and
// two effect sizes, which say how far off they are: the Kolmogorov-Smirnov distance and the
// coefficient of variation. With a million values any clock fails the p-value; the distance does
// not grow with the number of values.
//
// The distribution is known whole (case 0: p by Marsaglia and Marsaglia, "Evaluating the
// Anderson-Darling Distribution", Journal of Statistical Software 9(2), 2004), or it is the
// exponential with its mean estimated from the values (D'Agostino and Stephens, "Goodness-of-Fit
// Techniques", Dekker 1986, §4.9: table 4.14 and its p-value approximation).
#ifndef LOADGEN_METHOD_METHOD_ANDERSON_DARLING_H
#define LOADGEN_METHOD_METHOD_ANDERSON_DARLING_H

#include <stddef.h>

// The probability of a value at or below `value`.
typedef double (*distribution_function)(double value, const void *parameters);

// 1 - exp(-value / mean); parameters: const double *mean, more than 0.
double exponential_function(double value, const void *mean);

// The statistic of `count` ascending values. Values the distribution calls impossible (probability
// 0 or 1) enter with a probability of 1e-12: they make the statistic large, not infinite. NaN
// when empty.
double anderson_darling(const double *sorted, size_t count, distribution_function function,
                        const void *parameters);

// The probability of a statistic at least this large if the values did come from the distribution.
// Case 0; good to 5 decimals for any count.
double anderson_darling_p_known(double statistic, size_t count);

// The same for the exponential with the values' own mean.
double anderson_darling_p_exponential(double statistic, size_t count);

// The greatest distance, either way, between the values' distribution and the stated one. NaN when
// empty.
double kolmogorov_smirnov_distance(const double *sorted, size_t count,
                                   distribution_function function, const void *parameters);

// All of it for values that ought to be exponential with a mean.
struct exponential_fit {
    size_t count;
    double mean;            // of the values
    double variation;       // coefficient of variation; 1 for the exponential
    double known_statistic; // against the exponential with the intended mean
    double known_p;
    double estimated_statistic; // against the exponential with the values' own mean
    double estimated_p;
    double distance; // Kolmogorov-Smirnov, against the intended mean
};

// `count` ascending values, at least 2 and not all 0.
void exponential_fit_sorted(const double *sorted, size_t count, double intended_mean,
                            struct exponential_fit *fit);

#endif
