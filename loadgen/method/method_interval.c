// SPDX-License-Identifier: MIT
#include "loadgen/method/method_interval.h"

#include <math.h>
#include <stdlib.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fit.h>
#include <gsl/gsl_statistics_double.h>

#include "loadgen/method/method_independence.h"

enum {
    TAIL_LEAST = 10,  // values beyond the percentile that Hill's estimate needs
    BLOCKS = 20,      // that tell how much the percentile scatters
    BLOCKS_WORTH = 3, // at least: fewer say nothing, and their number is itself an estimate
    BLOCK_LEAST = 10,
    BLOCK_TAIL = 5,  // values beyond the percentile that a block needs for one of its own
    PIECES_LOG2 = 3, // the width is looked at over eighths, quarters, halves and the whole
};

static const double finite_variance = 2;     // a tail index up to this has none
static const double heavy_excess = 3;        // of p99 that is a local tail index of 1.5
static const double still_shrinking = -0.25; // half the theory's slope

double hill_tail_index(const double *values, size_t count, size_t beyond, double *work)
{
    double threshold, sum = 0;
    if (beyond == 0 || beyond >= count)
        return NAN;
    const size_t rank = count - beyond - 1;
    quantile_select(values, count, &rank, 1, work, &threshold);
    if (!(threshold > 0))
        return NAN;
    for (size_t i = 0; i < count; i++) // those that equal the threshold add nothing
        sum += values[i] > threshold ? log(values[i] / threshold) : 0;
    return sum > 0 && isfinite(sum) ? (double)beyond / sum : NAN;
}

static double width_of(const struct quantile_interval *interval)
{
    // Infinity minus infinity: both ends are unanswered requests.
    if (interval->known && isinf(interval->low))
        return INFINITY;
    return interval->known ? interval->high - interval->low : NAN;
}

// The mean width over equal pieces of the values, in time order. work: room for a piece.
static double piecewise_width(const double *values, size_t count, size_t pieces, double q,
                              double confidence, double *work)
{
    size_t size = count / pieces;
    double sum = 0;
    for (size_t i = 0; i < pieces; i++) {
        struct quantile_interval interval =
            quantile_interval_of(values + i * size, size, q, confidence, work);
        sum += width_of(&interval);
    }
    return sum / (double)pieces;
}

// The slope of log width against log samples, by least squares over eighths to the whole.
static double width_slope(const double *values, size_t count, double q, double confidence,
                          double whole, double *work)
{
    double samples[PIECES_LOG2 + 1] = {log((double)count)}, widths[PIECES_LOG2 + 1] = {log(whole)};
    double intercept, slope, covariance[3], squares;
    if ((count >> PIECES_LOG2) < percentile_interval_least(q, confidence))
        return NAN;
    for (unsigned i = 1; i <= PIECES_LOG2; i++) {
        samples[i] = log((double)(count >> i));
        widths[i] = log(piecewise_width(values, count, (size_t)1 << i, q, confidence, work));
        if (!isfinite(widths[i]))
            return NAN;
    }
    gsl_fit_linear(samples, 1, widths, 1, PIECES_LOG2 + 1, &intercept, &slope, &covariance[0],
                   &covariance[1], &covariance[2], &squares);
    return slope;
}

// The variance over blocks of the number of values beyond `threshold`, over the binomial's.
static double cluster_ratio(const double *values, size_t count, double threshold)
{
    size_t size = count / BLOCKS;
    double counts[BLOCKS] = {0};
    if (size < BLOCK_LEAST)
        return NAN;
    for (size_t i = 0; i < size * BLOCKS; i++)
        counts[i / size] += values[i] > threshold;
    double beyond = gsl_stats_mean(counts, 1, BLOCKS) / (double)size;
    double binomial = (double)size * beyond * (1 - beyond);
    return binomial > 0 ? gsl_stats_variance(counts, 1, BLOCKS) / binomial : NAN;
}

// How far the percentile may be off, as the logarithm of a factor, from the scatter of the
// percentiles of blocks, which may depend on one another (batch quantiles: Wood and Schmeiser,
// "Overlapping batch quantiles", Winter Simulation Conference 1995; logarithms, because latency is
// skewed). NaN: blocks are too short to have such a percentile, or one is infinite or not positive.
static double scatter_of_blocks(const double *values, size_t count, double q, double confidence,
                                double *work)
{
    double own[BLOCKS];
    size_t size = count / BLOCKS;
    if ((double)size * fmin(q, 1 - q) < BLOCK_TAIL)
        return NAN;
    for (size_t i = 0; i < BLOCKS; i++) {
        own[i] = log(quantile_of(values + i * size, size, q, work));
        if (!isfinite(own[i]))
            return NAN;
    }
    double mean = gsl_stats_mean(own, 1, BLOCKS), deviation = gsl_stats_sd(own, 1, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++)
        own[i] -= mean;
    double blocks = fmax(independence_worth(own, BLOCKS), BLOCKS_WORTH);
    return gsl_cdf_tdist_Qinv((1 - confidence) / 2, blocks) * deviation / sqrt(blocks);
}

// The interval of values that are worth only `worth` independent ones: that of as many, spread
// evenly among the ascending values.
static struct quantile_interval thinned_interval(const double *values, size_t count, double worth,
                                                 double q, double confidence, double *work)
{
    size_t kept = (size_t)worth, ranks[2];
    double found[2];
    if (!quantile_interval_ranks(kept, q, confidence, ranks))
        return (struct quantile_interval){false, NAN, NAN};
    for (size_t i = 0; i < 2; i++)
        ranks[i] = (size_t)(((double)ranks[i] + 0.5) / (double)kept * (double)count);
    quantile_select(values, count, ranks, 2, work, found);
    return (struct quantile_interval){true, found[0], found[1]};
}

// The percentile and its interval at once. Returns the value. count: not 0.
static double take_value(const double *values, size_t count, double q, double confidence,
                         double *work, struct quantile_interval *interval)
{
    size_t ranks[3] = {quantile_rank(count, q)};
    double found[3] = {NAN, NAN, NAN};
    interval->known = quantile_interval_ranks(count, q, confidence, ranks + 1);
    quantile_select(values, count, ranks, interval->known ? 3 : 1, work, found);
    interval->low = found[1];
    interval->high = found[2];
    return found[0];
}

// Fills in value, interval, width, clustering and worth. work: room for all values.
static void judge_value(const double *values, size_t count, double q, double confidence,
                        double *work, struct percentile_interval *result)
{
    struct quantile_interval plain;
    result->value = take_value(values, count, q, confidence, work, &plain);
    result->clustering = cluster_ratio(values, count, result->value);
    result->worth = (double)count / fmax(result->clustering, 1);
    result->interval = plain;
    if (plain.known && result->clustering > 1)
        result->interval = thinned_interval(values, count, result->worth, q, confidence, work);
    double off = scatter_of_blocks(values, count, q, confidence, work);
    if (plain.known && isfinite(off)) {
        struct quantile_interval *interval = &result->interval;
        plain = interval->known ? *interval : plain;
        interval->known = true;
        interval->low = fmin(plain.low, result->value * exp(-off));
        interval->high = fmax(plain.high, result->value * exp(off));
    }
    result->width = width_of(&result->interval);
}

// The width divided by the width for as many values of an exponential distribution with this
// percentile, from the quantile's asymptotic variance q (1 - q) / (n f^2). It catches queues behind
// one long request: their samples come in series, which Hill's estimate, taking each by itself,
// mistakes for a light tail.
static double width_excess(double value, double width, size_t count, double q, double confidence)
{
    double deviations = 2 * gsl_cdf_ugaussian_Qinv((1 - confidence) / 2);
    double exponential = deviations * sqrt(q / ((1 - q) * (double)count)) / -log1p(-q) * value;
    return exponential > 0 ? width / exponential : NAN;
}

// From values that were thinned until they are independent, as far as that goes.
static void judge_tail(const double *kept, size_t count, double q, double confidence, double *work,
                       struct percentile_interval *result)
{
    struct quantile_interval interval;
    double value = take_value(kept, count, q, confidence, work, &interval);
    double width = width_of(&interval);
    if (width > 0 && isfinite(width)) {
        result->excess = width_excess(value, width, count, q, confidence);
        result->shrinking = width_slope(kept, count, q, confidence, width, work);
    }
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
    double *work = malloc(count * sizeof *work), *kept = malloc(count * sizeof *kept);
    if (!work || !kept) {
        free(work);
        free(kept);
        return error_set(err, ERROR_FAILED, "out of memory for the interval of %zu samples", count);
    }
    size_t beyond = (size_t)((1 - q) * (double)count);
    if (beyond >= TAIL_LEAST)
        result->tail_index = hill_tail_index(values, count, beyond, work);
    result->count = count;
    judge_value(values, count, q, confidence, work, result);
    judge_tail(kept, independence_thin(values, count, thinning, kept), q, confidence, work, result);
    result->heavy = result->tail_index <= finite_variance || result->shrinking > still_shrinking ||
                    result->excess > heavy_excess;
    free(work);
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
