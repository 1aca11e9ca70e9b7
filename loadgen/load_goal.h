// SPDX-License-Identifier: MIT
//
// What a load looks for beyond one rate: the rates of --sweep, and the objective of --slo.
#ifndef LOADGEN_LOAD_GOAL_H
#define LOADGEN_LOAD_GOAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

// A service level objective, as --slo has it: "p99<=200us", "p99.9 < 1ms".
struct slo {
    double quantile; // 0.99
    double limit_us;
    bool strict; // <: the limit itself misses it
};

// ERROR_INPUT says what is wrong with the text.
int slo_parse(const char *text, struct slo *slo, struct error *err);

// True when a percentile of that many us (may be +infinity) meets it.
bool slo_is_met(const struct slo *slo, double us);

// The rates of a sweep, as --sweep has them: "10k:200k:10k" is from, to and step; "1k:64k:x2" makes
// each rate twice the one before. The last is `to`, or the last step below it.
enum { SWEEP_RATES_MAX = 1000, LOAD_RATE_MAX = 100000000 }; // requests per second

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
