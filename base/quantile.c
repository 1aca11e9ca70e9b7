// SPDX-License-Identifier: MIT
#include "base/quantile.h"

#include <math.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort_double.h>

double quantile_sorted(const double *sorted, size_t count, double q)
{
    if (count == 0)
        return NAN;
    double rank = ceil(q * (double)count);
    size_t index = rank < 1 ? 0 : (size_t)rank - 1;
    return sorted[index < count ? index : count - 1];
}

// The largest k with P(Binomial(n, q) <= k) <= probability, or -1 when there is none. The search
// is over a monotone function; GSL's incomplete-beta form stays exact for large n.
static long binomial_floor(double probability, double q, size_t n)
{
    long low = -1, high = (long)n;
    while (low + 1 < high) {
        long middle = low + (high - low) / 2;
        if (gsl_cdf_binomial_P((unsigned)middle, q, (unsigned)n) <= probability)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct quantile_interval quantile_interval_sorted(const double *sorted, size_t count, double q,
                                                  double confidence)
{
    struct quantile_interval interval = {.known = false, .low = NAN, .high = NAN};
    if (count < 2 || count > 0x7fffffff || q <= 0 || q >= 1)
        return interval;
    double tail = (1 - confidence) / 2;
    // The number of samples at or below the true quantile is Binomial(n, q). With 1-based order
    // statistics, P(X(low) <= quantile) = P(B >= low) and P(quantile < X(high)) = P(B < high).
    long below = binomial_floor(tail, q, count);         // P(B <= below) <= tail
    long above = binomial_floor(1 - tail, q, count) + 1; // P(B > above) <= tail
    if (below < 0 || above + 1 > (long)count)
        return interval;
    interval.known = true;
    interval.low = sorted[below];
    interval.high = sorted[above];
    return interval;
}

void quantile_sort(double *values, size_t count)
{
    gsl_sort(values, 1, count);
}
