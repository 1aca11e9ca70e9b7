// SPDX-License-Identifier: MIT
#include "loadgen/method/method_interval.h"

#include <math.h>
#include <stdlib.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fit.h>
#include <gsl/gsl_statistics_double.h>

#include "loadgen/method/method_independence.h"
#include "base/text.h"

enum {
    TAIL_LEAST = 10,  // values beyond the percentile that Hill's estimate needs
    BLOCKS = 20,      // that tell how much the percentile scatters
    BLOCKS_WORTH = 3, // at least: fewer say nothing, and their number is itself an estimate
    BLOCK_LEAST = 10,
    BLOCK_TAIL = 5,  // values beyond the percentile that a block needs for one of its own
    PIECES_LOG2 = 3, // the width is looked at over eighths, quarters, halves and the whole
};

// Percentiles that are looked at beside whichever are asked for, so that an interval is the same in
// whatever company it is asked for.
enum { NEIGHBOURS = 6 };
static const double neighbours[NEIGHBOURS] = {0.25, 0.5, 0.9, 0.99, 0.999, 0.9999};

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

// --- intervals that know of dependence -----------------------------------------------------------
// All quantiles at once, since finding order statistics is what takes time.

struct asked {
    double quantile;
    struct percentile_estimate is;
    double counts[BLOCKS], own[BLOCKS]; // of each block: values beyond it, and its own quantile
    size_t ranks[2];
};

static bool block_has_quantile(size_t block, double q)
{
    return (double)block * fmin(q, 1 - q) >= BLOCK_TAIL;
}

// The values and the intervals of as many independent samples. ranks and found: room for three
// numbers a quantile.
static void take_plain(const double *values, size_t count, double confidence, struct asked *asked,
                       size_t quantiles, double *work, size_t *ranks, double *found)
{
    for (size_t k = 0; k < quantiles; k++) {
        size_t *own = ranks + 3 * k;
        own[0] = own[1] = own[2] = quantile_rank(count, asked[k].quantile);
        asked[k].is.interval.known =
            quantile_interval_ranks(count, asked[k].quantile, confidence, own + 1);
    }
    quantile_select(values, count, ranks, 3 * quantiles, work, found);
    for (size_t k = 0; k < quantiles; k++) {
        struct quantile_interval *interval = &asked[k].is.interval;
        asked[k].is.value = found[3 * k];
        interval->low = interval->known ? found[3 * k + 1] : NAN;
        interval->high = interval->known ? found[3 * k + 2] : NAN;
    }
}

// The variance over blocks of the number of values beyond a quantile, over the binomial's.
static void take_clustering(const double *values, size_t count, struct asked *asked,
                            size_t quantiles)
{
    const size_t size = count / BLOCKS;
    for (size_t k = 0; k < quantiles; k++) {
        const struct asked *same = asked; // a neighbour that was asked for, too
        while (same < &asked[k] && same->quantile != asked[k].quantile)
            same++;
        if (same < &asked[k]) {
            asked[k].is.clustering = same->is.clustering;
            asked[k].is.worth = same->is.worth;
            continue;
        }
        asked[k].is.clustering = NAN;
        for (size_t block = 0; block < BLOCKS && size >= BLOCK_LEAST; block++)
            asked[k].counts[block] =
                (double)count_above(values + block * size, size, asked[k].is.value);
        double beyond =
            size >= BLOCK_LEAST ? gsl_stats_mean(asked[k].counts, 1, BLOCKS) / (double)size : 0;
        double binomial = (double)size * beyond * (1 - beyond);
        if (binomial > 0)
            asked[k].is.clustering = gsl_stats_variance(asked[k].counts, 1, BLOCKS) / binomial;
        asked[k].is.worth = (double)count / fmax(asked[k].is.clustering, 1);
    }
}

// Where samples come in clusters, the interval is that of as many independent ones as they are
// worth, spread evenly among the ascending values.
static void widen_by_clustering(const double *values, size_t count, double confidence,
                                struct asked *asked, size_t quantiles, double *work, size_t *ranks,
                                double *found)
{
    size_t wanted = 0;
    for (size_t k = 0; k < quantiles; k++) {
        struct asked *one = &asked[k];
        const size_t kept = (size_t)one->is.worth;
        if (!one->is.interval.known || !(one->is.clustering > 1))
            continue;
        one->is.interval.known =
            quantile_interval_ranks(kept, one->quantile, confidence, ranks + wanted);
        for (size_t i = 0; i < 2 && one->is.interval.known; i++, wanted++)
            ranks[wanted] = (size_t)(((double)ranks[wanted] + 0.5) / (double)kept * (double)count);
    }
    if (wanted)
        quantile_select(values, count, ranks, wanted, work, found);
    for (size_t k = 0, at = 0; k < quantiles; k++) {
        struct quantile_interval *interval = &asked[k].is.interval;
        if (!interval->known)
            interval->low = interval->high = NAN;
        if (!(asked[k].is.clustering > 1) || !interval->known)
            continue;
        interval->low = found[at++];
        interval->high = found[at++];
    }
}

// How far a quantile may be off, as the logarithm of a factor, from the scatter of the quantiles of
// blocks, which may depend on one another (batch quantiles: Wood and Schmeiser, "Overlapping batch
// quantiles", Winter Simulation Conference 1995; logarithms, because latency is skewed). NaN: one
// is infinite or not positive.
static double scatter_of_blocks(struct asked *asked, double confidence)
{
    double *own = asked->own;
    for (size_t i = 0; i < BLOCKS; i++)
        if (!isfinite(own[i]))
            return NAN;
    double mean = gsl_stats_mean(own, 1, BLOCKS), deviation = gsl_stats_sd(own, 1, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++)
        own[i] -= mean;
    double blocks = fmax(independence_worth(own, BLOCKS), BLOCKS_WORTH);
    return gsl_cdf_tdist_Qinv((1 - confidence) / 2, blocks) * deviation / sqrt(blocks);
}

// Blocks too short to have such a quantile say nothing of it. plain[k]: the interval before it was
// widened.
static void widen_by_scatter(const double *values, size_t count, double confidence,
                             const struct quantile_interval *plain, struct asked *asked,
                             size_t quantiles, double *work, size_t *ranks, double *found)
{
    const size_t size = count / BLOCKS;
    size_t wanted = 0;
    for (size_t k = 0; k < quantiles; k++)
        if (plain[k].known && block_has_quantile(size, asked[k].quantile))
            ranks[wanted++] = quantile_rank(size, asked[k].quantile);
    for (size_t block = 0; block < BLOCKS && wanted; block++) {
        quantile_select(values + block * size, size, ranks, wanted, work, found);
        for (size_t k = 0, at = 0; k < quantiles; k++)
            if (plain[k].known && block_has_quantile(size, asked[k].quantile))
                asked[k].own[block] = log(found[at++]);
    }
    for (size_t k = 0; k < quantiles; k++) {
        struct quantile_interval *interval = &asked[k].is.interval;
        if (!plain[k].known || !block_has_quantile(size, asked[k].quantile))
            continue;
        const double off = scatter_of_blocks(&asked[k], confidence);
        const struct quantile_interval before = interval->known ? *interval : plain[k];
        if (isfinite(off))
            *interval =
                (struct quantile_interval){true, fmin(before.low, asked[k].is.value * exp(-off)),
                                           fmax(before.high, asked[k].is.value * exp(off))};
    }
}

// The scatter may widen an interval beyond all values that were seen, which says nothing more.
static void bound_by_seen(const double *values, size_t count, struct asked *asked, size_t quantiles)
{
    double least = values[0], greatest = values[0];
    for (size_t i = 1; i < count; i++) {
        least = values[i] < least ? values[i] : least;
        greatest = values[i] > greatest ? values[i] : greatest;
    }
    for (size_t k = 0; k < quantiles; k++) {
        if (!asked[k].is.interval.known)
            continue;
        asked[k].is.interval.low = fmax(asked[k].is.interval.low, least);
        asked[k].is.interval.high = fmin(asked[k].is.interval.high, greatest);
    }
}

// Each percentile is widened by itself, p90 possibly to below p50's interval: but it is above what
// p50 is above. A lower percentile that may be higher than this one's interval makes this one's
// wider, not its own narrower: of extreme percentiles the blocks say nothing, so their upper ends
// are the less sure ones.
static void order_by_neighbours(struct asked *asked, size_t quantiles,
                                const struct asked near[NEIGHBOURS])
{
    for (size_t k = 0; k < quantiles; k++)
        for (size_t i = 0; i < NEIGHBOURS; i++) {
            struct quantile_interval *own = &asked[k].is.interval;
            if (!own->known || !near[i].is.interval.known || near[i].quantile > asked[k].quantile)
                continue;
            own->low = fmax(own->low, near[i].is.interval.low);
            own->high = fmax(own->high, near[i].is.interval.high);
        }
}

// asked: followed by room for the NEIGHBOURS. count: not 0. work: room for all values.
// ERROR_FAILED: out of memory.
static int take_asked(const double *values, size_t count, double confidence, struct asked *asked,
                      size_t own, double *work, struct error *err)
{
    const size_t quantiles = own + NEIGHBOURS;
    for (size_t i = 0; i < NEIGHBOURS; i++)
        asked[own + i] = (struct asked){.quantile = neighbours[i]};
    size_t *ranks = calloc(3 * quantiles + 1, sizeof *ranks);
    double *found = calloc(3 * quantiles + 1, sizeof *found);
    struct quantile_interval *plain = calloc(quantiles + 1, sizeof *plain);
    int status =
        ranks && found && plain ? 0 : error_set(err, ERROR_FAILED, "out of memory for percentiles");
    if (status == 0) {
        take_plain(values, count, confidence, asked, quantiles, work, ranks, found);
        for (size_t k = 0; k < quantiles; k++)
            plain[k] = asked[k].is.interval;
        take_clustering(values, count, asked, quantiles);
        widen_by_clustering(values, count, confidence, asked, quantiles, work, ranks, found);
        widen_by_scatter(values, count, confidence, plain, asked, quantiles, work, ranks, found);
        bound_by_seen(values, count, asked, quantiles);
        order_by_neighbours(asked, own, asked + own);
    }
    free(plain);
    free(found);
    free(ranks);
    return status;
}

int percentile_estimates_take(const double *values, size_t count, const double *quantiles,
                              size_t quantile_count, double confidence,
                              struct percentile_estimate *estimates, struct error *err)
{
    struct asked *asked = calloc(quantile_count + NEIGHBOURS, sizeof *asked);
    double *work = malloc((count + 1) * sizeof *work);
    int status = asked && work ? 0
                               : error_set(err, ERROR_FAILED,
                                           "out of memory for the percentiles of %s values",
                                           TEXT_COUNT(count));
    for (size_t k = 0; status == 0 && k < quantile_count; k++)
        asked[k].quantile = quantiles[k];
    if (status == 0 && count)
        status = take_asked(values, count, confidence, asked, quantile_count, work, err);
    for (size_t k = 0; status == 0 && k < quantile_count; k++)
        estimates[k] =
            count ? asked[k].is : (struct percentile_estimate){NAN, {false, NAN, NAN}, NAN, 0};
    free(work);
    free(asked);
    return status;
}

int percentile_intervals_take(const double *values, size_t count, const double *quantiles,
                              size_t quantile_count, double confidence, double *found,
                              struct quantile_interval *intervals, struct error *err)
{
    struct percentile_estimate *estimates = calloc(quantile_count + 1, sizeof *estimates);
    int status = estimates ? percentile_estimates_take(values, count, quantiles, quantile_count,
                                                       confidence, estimates, err)
                           : error_set(err, ERROR_FAILED, "out of memory for percentiles");
    for (size_t k = 0; status == 0 && k < quantile_count; k++) {
        found[k] = estimates[k].value;
        intervals[k] = estimates[k].interval;
    }
    free(estimates);
    return status;
}

// --- one percentile, judged ----------------------------------------------------------------------

// The percentile and its interval at once, as of independent values. Returns the value. count: not
// 0.
static double take_value(const double *values, size_t count, double q, double confidence,
                         double *work, struct quantile_interval *interval)
{
    struct asked asked = {.quantile = q};
    size_t ranks[3];
    double found[3];
    take_plain(values, count, confidence, &asked, 1, work, ranks, found);
    *interval = asked.is.interval;
    return asked.is.value;
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

int percentile_interval_judge(const double *values, size_t count, size_t thinning, double q,
                              double confidence, const struct percentile_estimate *known,
                              struct percentile_interval *result, struct error *err)
{
    struct percentile_estimate estimate;
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
    int status = work && kept
                     ? 0
                     : error_set(err, ERROR_FAILED, "out of memory for the interval of %s samples",
                                 TEXT_COUNT(count));
    if (status == 0 && !known) {
        status = percentile_estimates_take(values, count, &q, 1, confidence, &estimate, err);
        known = &estimate;
    }
    if (status == 0) {
        const size_t tail = independence_thin(values, count, independence_evidence(count, q), kept);
        const size_t beyond = (size_t)((1 - q) * (double)tail);
        if (beyond >= TAIL_LEAST)
            result->tail_index = hill_tail_index(kept, tail, beyond, work);
        result->count = count;
        result->value = known->value;
        result->interval = known->interval;
        result->clustering = known->clustering;
        result->worth = known->worth;
        result->width = width_of(&result->interval);
        judge_tail(kept, independence_thin(values, count, thinning, kept), q, confidence, work,
                   result);
        result->heavy = result->tail_index <= finite_variance ||
                        result->shrinking > still_shrinking || result->excess > heavy_excess;
    }
    free(work);
    free(kept);
    return status;
}

int percentile_interval_take(const double *values, size_t count, size_t thinning, double q,
                             double confidence, struct percentile_interval *result,
                             struct error *err)
{
    return percentile_interval_judge(values, count, thinning, q, confidence, NULL, result, err);
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
