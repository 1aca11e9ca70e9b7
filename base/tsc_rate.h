// SPDX-License-Identifier: MIT
//
// How fast the time-stamp counter runs, for who needs durations and no clock map.
#ifndef BASE_TSC_RATE_H
#define BASE_TSC_RATE_H

#include <stdint.h>

// Ticks per second, measured against CLOCK_MONOTONIC_RAW over that many ns of sleep. The error is
// about 50 ns divided by the duration: 1 ppm over 50 ms.
double tsc_measure_hz(uint64_t over_ns);

// A pair of readings of the two clocks, taken as close together as a few tries allow.
struct tsc_pair {
    uint64_t tsc;
    uint64_t raw_ns;
};
struct tsc_pair tsc_take_pair(void);

// The rate between two pairs.
double tsc_rate_between(const struct tsc_pair *first, const struct tsc_pair *second);

#endif
