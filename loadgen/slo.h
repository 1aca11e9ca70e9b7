// SPDX-License-Identifier: MIT
//
// A service level objective, as --slo has it: "p99<=200us", "p99.9 < 1ms".
#ifndef LOADGEN_SLO_H
#define LOADGEN_SLO_H

#include <stdbool.h>

#include "base/error.h"

struct slo {
    double quantile; // 0.99
    double limit_us;
    bool strict; // <: the limit itself misses it
};

// ERROR_INPUT says what is wrong with the text.
int slo_parse(const char *text, struct slo *slo, struct error *err);

// True when a percentile of that many us (may be +infinity) meets it.
bool slo_is_met(const struct slo *slo, double us);

#endif
