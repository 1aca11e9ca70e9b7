// SPDX-License-Identifier: MIT
//
// Is the latency stationary over the load? (Lancet §4.3.) The samples, in time order, become a
// series of window medians. From it come: how long the warm-up lasted; the augmented Dickey-Fuller
// test, which asks whether the series wanders off (a unit root) rather than returning to a mean;
// and the size of the change, because failing to reject a unit root is no evidence of one, and a
// drift may be too small to matter. A change counts when it is both larger than a tolerance and
// beyond chance, measured against the scatter of parts of the load, which is valid whatever
// dependence the samples have. docs/method.md says how often that errs.
#ifndef LOADGEN_METHOD_METHOD_STATIONARITY_H
#define LOADGEN_METHOD_METHOD_STATIONARITY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/quantile.h"
#include "loadgen/engine/engine_result.h"
#include "workloads/rate_pattern.h"

// Dickey and Fuller's regression with a constant, diff(y)_t = a + g y_{t-1} + sum of d_i
// diff(y)_{t-i} (Said and Dickey, Biometrika 71(3), 1984); the number of lags by Akaike's
// criterion, up to Schwert's bound 12 (T / 100)^(1/4) (Journal of Business & Economic Statistics
// 7(2), 1989).
struct dickey_fuller {
    bool known;         // false: too few values, or nothing varies
    double statistic;   // t of g: the more negative, the surer that the series returns
    double p;           // of a unit root
    double critical[3]; // at 1, 5 and 10 %, for this number of observations
    size_t lags, observations;
};

// `count` finite values, a few hundred at most.
void dickey_fuller_test(const double *series, size_t count, struct dickey_fuller *result);

enum dickey_fuller_level { DICKEY_FULLER_1, DICKEY_FULLER_5, DICKEY_FULLER_10 };

// The statistic below which a unit root is rejected. MacKinnon, "Critical Values for Cointegration
// Tests", Queen's Economics Department Working Paper 1227, 2010, table 2 (constant, N = 1).
double dickey_fuller_critical(enum dickey_fuller_level level, size_t observations);

// The asymptotic p-value of a statistic. MacKinnon, "Approximate Asymptotic Distribution Functions
// for Unit-Root and Cointegration Tests", Journal of Business & Economic Statistics 12(2), 1994.
double dickey_fuller_p(double statistic);

// How many values at the start to leave out, so that the mean of the rest is best known: the
// marginal standard error rule (White, "An effective truncation heuristic for bias reduction in
// simulation output", Simulation 69(6), 1997). At most half of them.
size_t warm_up_length(const double *series, size_t count);

struct half_quantile {
    double first, second; // of the first and of the second half
    double p;             // of so large a difference by chance
    bool differs;         // beyond chance and beyond what matters
};

struct trend {
    double begin, end; // of a straight line through the window medians
    double p;          // of so steep a line by chance
    bool matters;      // beyond chance and beyond what matters
};

struct stationarity {
    bool judged;     // false: too few samples
    bool stationary; // what follows together; with too few to judge: true
    size_t windows;  // of the series
    struct dickey_fuller dickey_fuller;
    double quarters_spread; // the greatest quarter's median over the least's, minus 1
    bool wanders;           // no return to a mean, and quarters differ by what matters
    struct trend trend;
    struct half_quantile median, target;
};

// How many samples at the start are warm-up; 0 where there are too few to tell. ERROR_FAILED: out
// of memory.
int stationarity_warm_up(const double *values, size_t count, size_t *warm_up, struct error *err);

// Of `count` latencies in time order, in us, without the warm-up; infinite ones are allowed. q: the
// target percentile, compared between the halves beside the median. ERROR_FAILED: out of memory.
int stationarity_judge(const double *values, size_t count, double q, struct stationarity *result,
                       struct error *err);

// --- loads whose rate changes --------------------------------------------------------------------
// Loads whose rate changes by plan (workloads/rate_pattern.h). A step's levels are judged one by
// one: latency must be stationary within each, not across them. Where the rate changes all the time
// (ramp, diurnal) nothing can be stationary, and a percentile describes a mix of loads: this is
// reported, and is no fault of the load.

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
