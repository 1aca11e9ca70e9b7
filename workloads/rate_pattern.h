// SPDX-License-Identifier: MIT
//
// How the rate of requests changes over a run, as factors of the rate asked for:
//
//     step:0.5,1,2     in pieces of equal length, one factor each (up to 16)
//     ramp:0.5,1.5     from the first to the second, evenly
//     diurnal:0.4,2    1 + 0.4 sin(2 pi t), two days a run (one, when left out)
//
// Arrivals keep their shape: they are drawn for a constant rate and then moved in time so that they
// come as densely as the pattern says (time change of a point process; Cinlar, "Introduction to
// Stochastic Processes", Prentice-Hall 1975, section 4.7).
#ifndef WORKLOADS_RATE_PATTERN_H
#define WORKLOADS_RATE_PATTERN_H

#include <stddef.h>

#include "base/error.h"

enum rate_pattern_kind { PATTERN_CONSTANT, PATTERN_STEP, PATTERN_RAMP, PATTERN_DIURNAL };

enum { PATTERN_VALUES = 16 };

// Zeroed: constant, factor 1.
struct rate_pattern {
    enum rate_pattern_kind kind;
    unsigned count;
    double values[PATTERN_VALUES];
};

// ERROR_INPUT names what is wrong; "constant" is taken too.
int rate_pattern_parse(const char *text, struct rate_pattern *pattern, struct error *err);

// Writes it back in that form. Returns out.
char *rate_pattern_format(const struct rate_pattern *pattern, char *out, size_t out_bytes);

// The integral of the factor from the run's begin to the fraction x (0 to 1) of it.
double rate_pattern_integral(const struct rate_pattern *pattern, double x);

// Where that integral reaches `integral`, at or behind `from`; 1 when it never does.
double rate_pattern_inverse(const struct rate_pattern *pattern, double integral, double from);

#endif
