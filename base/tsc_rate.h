// SPDX-License-Identifier: MIT
//
// How fast the time-stamp counter runs, for code that needs durations but has no clock map.
#ifndef BASE_TSC_RATE_H
#define BASE_TSC_RATE_H

#include <stdint.h>

// Ticks per second, measured against CLOCK_MONOTONIC_RAW by sleeping that many ns. The error is
// about 50 ns divided by the duration: 1 ppm over 50 ms.
double tsc_measure_hz(uint64_t over_ns);

// Reads both clocks at nearly the same instant: the closest pair of a few tries.
struct tsc_pair {
    uint64_t tsc;
    uint64_t raw_ns;
};
struct tsc_pair tsc_take_pair(void);

// The rate between two such pairs.
double tsc_rate_between(const struct tsc_pair *first, const struct tsc_pair *second);

#endif
