// SPDX-License-Identifier: MIT
//
// Loads whose rate changes by plan (workloads/rate_pattern.h). A step's levels are judged one by
// one: latency must be stationary within each, not across them. Where the rate changes all the time
// (ramp, diurnal) nothing can be stationary, and a percentile describes a mix of loads: this is
// reported, and is no fault of the load.
#ifndef LOADGEN_METHOD_METHOD_LEVELS_H
#define LOADGEN_METHOD_METHOD_LEVELS_H

#include "base/error.h"
#include "loadgen/engine/engine_result.h"
#include "loadgen/method/method_stationarity.h"
#include "workloads/rate_pattern.h"

struct level {
    double factor;    // of the rate
    size_t count;     // of the requests in it
    double median_us; // of those, after its warm-up
    double target_us; // the target percentile, the same
    struct stationarity stationarity;
};

struct levels {
    unsigned count; // 0: no levels
    struct level items[PATTERN_VALUES];
};

// `values`: the latencies of all samples, in us and schedule order. q: the target
// percentile. ERROR_FAILED: out of memory.
int levels_judge(const struct engine_result *run, const double *values,
                 const struct rate_pattern *pattern, double duration_s, double q,
                 struct levels *levels, struct error *err);

// The first level that is not stationary, or NULL.
const struct level *levels_unsteady(const struct levels *levels);

#endif
