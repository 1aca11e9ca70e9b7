// SPDX-License-Identifier: MIT
#include "experiments/watch/metric_histogram.h"

#include <math.h>

double metric_bound(int bucket)
{
    return 1e-6 * exp2(bucket / 2.0);
}

void metric_observe(struct metric_histogram *histogram, double seconds)
{
    int bucket = 0;
    while (bucket < METRIC_BOUNDS && seconds > metric_bound(bucket))
        bucket++;
    histogram->counts[bucket]++;
    histogram->sum += seconds;
    if (seconds <= METRIC_ZERO_SECONDS) {
        histogram->zeros++;
        return;
    }
    double native = ceil(log2(seconds) * (1 << METRIC_SCHEMA));
    histogram->native[(int)fmin(native, METRIC_NATIVE_LAST) - METRIC_NATIVE_FIRST]++;
}
