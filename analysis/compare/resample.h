// SPDX-License-Identifier: MIT
//
// How far a figure of several runs would scatter if the runs were repeated: the hierarchical
// bootstrap, over runs and over what is within them.
//
// A run's requests are cut into blocks of time, since neighbours in a queue are alike (Künsch,
// Annals of Statistics 17(3), 1989). Two bootstraps: one draws whole runs with replacement, one
// keeps the runs and draws blocks within each. The scatter of the first already holds the second's,
// since a run drawn is drawn with its own luck (Davison & Hinkley, Bootstrap Methods, 1997, §3.8),
// so the variances are not added; the larger counts. Drawing n runs of n understates their variance
// by (n-1)/n, which is corrected.
//
// Student's t accounts for small numbers of runs (two sides of unequal scatter: Welch, Biometrika
// 34, 1947): intervals of two runs a side are very wide, those of ten much narrower.
//
// The generator is GSL's mt19937 with a seed that is always the same and is reported: a comparison
// can be repeated to the last digit.
#ifndef ANALYSIS_COMPARE_RESAMPLE_H
#define ANALYSIS_COMPARE_RESAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One run is a set of one; the candidate may be a set without a base.
enum { COMPARE_BASE, COMPARE_CANDIDATE, COMPARE_SIDES };

enum { RESAMPLE_BLOCKS = 40, RESAMPLES = 1000, RESAMPLE_SEED = 20260 };

// The figure when block b of run r counts weights[r * RESAMPLE_BLOCKS + b] times.
typedef double (*resample_figure)(const void *context, const uint16_t *weights);

struct resample_spread {
    double error; // standard error of the figure; +infinity where a resample's is not finite
    size_t runs;
};

// The draws, which are the same for all figures of as many runs.
struct resample;

// runs > 0. NULL: no memory. The caller frees.
struct resample *resample_alloc(size_t runs);
void resample_free(struct resample *resample);

// How far the figure scatters over the draws.
struct resample_spread resample_spread(const struct resample *resample, resample_figure figure,
                                       const void *context);

struct resample_interval {
    double low, high;
    bool between_runs; // false: a side has one run only, so differences between runs are not
                       // in it
};

// Of candidate minus base.
struct resample_interval resample_difference(double difference, const struct resample_spread *base,
                                             const struct resample_spread *candidate,
                                             double confidence);

// Of one side's figure.
struct resample_interval resample_single(double figure, const struct resample_spread *spread,
                                         double confidence);

#endif
