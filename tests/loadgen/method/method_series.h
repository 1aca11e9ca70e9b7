// SPDX-License-Identifier: MIT
//
// Number series that other programs can draw too, so that their reference values hold: a linear
// congruential generator (the C standard's example), and what the tests share.
#ifndef TESTS_LOADGEN_METHOD_METHOD_SERIES_H
#define TESTS_LOADGEN_METHOD_METHOD_SERIES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

// x' = (1103515245 x + 12345) mod 2^31; uniform in [0, 1): x' / 2^31.
static inline double series_uniform(uint64_t *state)
{
    *state = (*state * 1103515245 + 12345) % 2147483648u;
    return (double)*state / 2147483648.0;
}

static inline void series_fill(double *values, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        values[i] = series_uniform(&seed);
}

static inline int series_near(double value, double reference, double tolerance)
{
    return fabs(value - reference) <= tolerance;
}

#endif
