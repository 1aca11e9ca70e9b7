// SPDX-License-Identifier: MIT
//
// The rates of a sweep, as --sweep has them: "10k:200k:10k" is from, to and step; "1k:64k:x2" makes
// each rate twice the one before. The last is `to`, or the last step below it.
#ifndef LOADGEN_SWEEP_RANGE_H
#define LOADGEN_SWEEP_RANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { SWEEP_RATES_MAX = 1000 };

struct sweep_range {
    double from, to; // requests per second
    double step;     // to add, or to multiply with
    bool geometric;
    size_t count; // of rates
};

// ERROR_INPUT says what is wrong with the text.
int sweep_range_parse(const char *text, struct sweep_range *range, struct error *err);

// The i-th rate, i < range->count.
double sweep_range_rate(const struct sweep_range *range, size_t i);

#endif
