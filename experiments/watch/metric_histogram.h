// SPDX-License-Identifier: MIT
//
// A histogram of seconds, in the two ways in which those who scrape metrics read them.
#ifndef EXPERIMENTS_WATCH_METRIC_HISTOGRAM_H
#define EXPERIMENTS_WATCH_METRIC_HISTOGRAM_H

#include <stdint.h>

// Counted twice: by bounds that every reader takes, two for each doubling from 1 us to
// 2.1 s, and as Prometheus' native histograms do: eight for each doubling (schema 3), bucket i up
// to 2^(i/8) s, of which an ordinary sample fills few. Below 2^-27 s (7.5 ns) is its zero bucket.
enum {
    METRIC_BOUNDS = 43,
    METRIC_SCHEMA = 3,
    METRIC_NATIVE_FIRST = -27 * 8 + 1,
    METRIC_NATIVE_LAST = 14 * 8, // 4.5 hours; more is counted as that
    METRIC_NATIVE = METRIC_NATIVE_LAST - METRIC_NATIVE_FIRST + 1,
};
#define METRIC_ZERO_SECONDS 0x1p-27

struct metric_histogram {
    uint64_t counts[METRIC_BOUNDS + 1]; // the last: beyond all bounds
    uint64_t zeros, native[METRIC_NATIVE];
    double sum;
};

void metric_observe(struct metric_histogram *histogram, double seconds);
double metric_bound(int bucket); // the upper end, in seconds, of one of METRIC_BOUNDS

#endif
