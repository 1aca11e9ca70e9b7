// SPDX-License-Identifier: MIT
//
// Do repetitions of a load agree as well as their confidence intervals promise? (Treadmill, Zhang
// et al., ISCA 2016, §III-D "hysteresis": each start of a server settles on a level of its own,
// which a longer load does not average out.) The target percentile's spread between repetitions is
// compared with what its confidence intervals within them explain: with v_i the percentiles, s_i
// the standard errors that the intervals imply and n repetitions, sum((v_i - mean)^2) / mean(s_i^2)
// is chi-squared with n - 1 degrees of freedom if chance within repetitions is the only cause (the
// homogeneity test of Cochran, Biometrics 10(1), 1954, with equal weights, because a percentile and
// the width of its interval are not independent).
#ifndef LOADGEN_METHOD_BETWEEN_RUNS_H
#define LOADGEN_METHOD_BETWEEN_RUNS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/quantile.h"

struct repetition {
    double value;                      // the target percentile, us
    struct quantile_interval interval; // of it, at the confidence given below
};

struct between_runs {
    size_t count;     // repetitions whose percentile and interval are known and finite
    double low, high; // the range of their percentiles; NaN: none
    double spread;    // high - low
    double within;    // standard error that the intervals within explain (root mean square)
    double between;   // standard deviation between runs beyond that; 0: none is seen
    bool judged;      // false: fewer than two repetitions count
    double statistic; // chi-squared
    double p;         // probability of that much spread if the intervals explain all of it
    bool exceeds;     // p < 1 - confidence
};

// Looks at `count` repetitions.
void between_runs_judge(const struct repetition *repetitions, size_t count, double confidence,
                        struct between_runs *result);

// The member "between" of docs/load-json.md, and the text for people. The caller owns the JSON;
// NULL: out of memory.
json_t *between_runs_json(const struct between_runs *found, const char *percentile);
void between_runs_print(const struct between_runs *found, const struct repetition *repetitions,
                        size_t count, const char *percentile, FILE *out);

#endif
