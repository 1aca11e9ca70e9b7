// SPDX-License-Identifier: MIT
#include "loadgen/method_interval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fit.h>
#include <gsl/gsl_statistics_double.h>

#include "loadgen/method_independence.h"

enum {
    TAIL_LEAST = 10, // values beyond the percentile that Hill's estimate needs
    BLOCKS = 20,     // in which the values beyond the percentile are counted
    BLOCK_LEAST = 10,
    PIECES_LOG2 = 3, // the width is looked at over eighths, quarters, halves and the whole
};

static const double finite_variance = 2;     // a tail index up to this has none
static const double heavy_excess = 3;        // of p99 that is a local tail index of 1.5
static const double still_shrinking = -0.25; // half the theory's slope

double hill_tail_index(const double *sorted, size_t count, size_t beyond)
{
    if (beyond == 0 || beyond >= count)
        return NAN;
    double threshold = sorted[count - beyond - 1], sum = 0;
    if (!(threshold > 0) || !isfinite(sorted[count - 1]))
        return NAN;
    for (size_t i = count - beyond; i < count; i++)
        sum += log(sorted[i] / threshold);
    return sum > 0 ? (double)beyond / sum : NAN;
}

static double width_of(const struct quantile_interval *interval)
{
    // Infinity minus infinity: both ends are unanswered requests.
    if (interval->known && isinf(interval->low))
        return INFINITY;
    return interval->known ? interval->high - interval->low : NAN;
}

// The mean width over equal pieces of the values, in time order. sorted: room for a piece.
static double piecewise_width(const double *values, size_t count, size_t pieces, double q,
                              double confidence, double *sorted)
{
    size_t size = count / pieces;
    double sum = 0;
    for (size_t i = 0; i < pieces; i++) {
        memcpy(sorted, values + i * size, size * sizeof *sorted);
        quantile_sort(sorted, size);
        struct quantile_interval interval = quantile_interval_sorted(sorted, size, q, confidence);
        sum += width_of(&interval);
    }
    return sum / (double)pieces;
}

// The slope of log width against log samples, by least squares over eighths to the whole.
static double shrinking(const double *values, size_t count, double q, double confidence,
                        double whole, double *sorted)
{
    double samples[PIECES_LOG2 + 1] = {log((double)count)}, widths[PIECES_LOG2 + 1] = {log(whole)};
    double intercept, slope, covariance[3], squares;
    if ((count >> PIECES_LOG2) < percentile_interval_least(q, confidence))
        return NAN;
    for (unsigned i = 1; i <= PIECES_LOG2; i++) {
        samples[i] = log((double)(count >> i));
        widths[i] = log(piecewise_width(values, count, (size_t)1 << i, q, confidence, sorted));
        if (!isfinite(widths[i]))
            return NAN;
    }
    gsl_fit_linear(samples, 1, widths, 1, PIECES_LOG2 + 1, &intercept, &slope, &covariance[0],
                   &covariance[1], &covariance[2], &squares);
    return slope;
}

// The variance over blocks of the number of thinned values beyond `threshold`, over the binomial's.
// The interval rests on that number: clusters make it wider by the square root. Few are left by the
// thinning, so it is taken of all values, and what is more than the binomial's divided by the
// thinning (as for any doubly stochastic process).
static double clustering(const double *values, size_t count, size_t thinning, double threshold)
{
    size_t size = count / BLOCKS;
    double counts[BLOCKS] = {0};
    if (size < BLOCK_LEAST)
        return NAN;
    for (size_t i = 0; i < size * BLOCKS; i++)
        counts[i / size] += values[i] > threshold;
    double beyond = gsl_stats_mean(counts, 1, BLOCKS) / (double)size;
    double binomial = (double)size * beyond * (1 - beyond);
    double excess = gsl_stats_variance(counts, 1, BLOCKS) / binomial - 1;
    return binomial > 0 ? 1 + excess / (double)thinning : NAN;
}

// The width over that which as many values of an exponential distribution with this percentile
// have, from the quantile's asymptotic variance q (1 - q) / (n f^2): queues behind one long request
// make runs of samples that Hill's estimate, which takes them one by one, mistakes for a light
// tail.
static double width_excess(const struct percentile_interval *found, double q, double confidence)
{
    double deviations = 2 * gsl_cdf_ugaussian_Qinv((1 - confidence) / 2);
    double exponential =
        deviations * sqrt(q / ((1 - q) * (double)found->count)) / -log1p(-q) * found->value;
    return exponential > 0 ? found->width / exponential : NAN;
}

int percentile_interval_take(const double *values, size_t count, size_t thinning, double q,
                             double confidence, struct percentile_interval *result,
                             struct error *err)
{
    *result = (struct percentile_interval){.value = NAN,
                                           .width = NAN,
                                           .interval = {false, NAN, NAN},
                                           .tail_index = NAN,
                                           .shrinking = NAN,
                                           .clustering = NAN,
                                           .excess = NAN};
    if (count == 0)
        return 0;
    double *sorted = malloc(count * sizeof *sorted), *kept = malloc(count * sizeof *kept);
    if (!sorted || !kept) {
        free(sorted);
        free(kept);
        return error_set(err, ERROR_FAILED, "out of memory for the interval of %zu samples", count);
    }
    memcpy(sorted, values, count * sizeof *sorted);
    quantile_sort(sorted, count);
    size_t beyond = (size_t)((1 - q) * (double)count);
    if (beyond >= TAIL_LEAST)
        result->tail_index = hill_tail_index(sorted, count, beyond);
    result->count = independence_thin(values, count, thinning, kept);
    memcpy(sorted, kept, result->count * sizeof *sorted);
    quantile_sort(sorted, result->count);
    result->value = quantile_sorted(sorted, result->count, q);
    result->interval = quantile_interval_sorted(sorted, result->count, q, confidence);
    result->width = width_of(&result->interval);
    result->clustering = clustering(values, count, thinning, result->value);
    if (result->width > 0 && isfinite(result->width)) {
        result->shrinking = shrinking(kept, result->count, q, confidence, result->width, sorted);
        result->excess = width_excess(result, q, confidence);
    }
    result->heavy = result->tail_index <= finite_variance || result->shrinking > still_shrinking ||
                    result->excess > heavy_excess;
    free(sorted);
    free(kept);
    return 0;
}

size_t percentile_interval_least(double q, double confidence)
{
    // With no sample beyond the percentile (probability q^n), or none before it, there is no
    // bound on that side: that must be rarer than either tail of the interval.
    double tail = (1 - confidence) / 2, rare = fmin(q, 1 - q);
    return (size_t)ceil(log(tail) / log1p(-rare)) + 1;
}

double percentile_interval_needed(const struct percentile_interval *now, double q,
                                  double confidence, double width)
{
    double least = (double)percentile_interval_least(q, confidence);
    if (isnan(now->width))
        return fmax(least, 2 * (double)now->count);
    if (isinf(now->width))
        return INFINITY;
    double ratio = now->width / width;
    return fmax(least, (double)now->count * ratio * ratio);
}
