// SPDX-License-Identifier: MIT
#include "analysis/compare/percentile_shift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantile.h"
#include "base/array.h"
#include "base/text.h"

// The number of requests beyond a percentile that is needed for an estimate of its scatter.
enum { BINS_PER_OCTAVE = 256, LEAST_BEYOND = 10 };

struct latency_set {
    size_t runs, count;
    double *sorted;     // of all runs
    size_t *unanswered; // of each run
    size_t *requests;   // of each run
    double lowest;      // log2 of the first bin's low edge
    unsigned bins;      // the last holds the unanswered
    uint32_t *up_to;    // [run][block][bin]: requests in this bin and all below
    struct resample *resample;
};

struct figure_context {
    const struct latency_set *set;
    double quantile;
};

static unsigned bin_of(const struct latency_set *set, double ns)
{
    if (isinf(ns))
        return set->bins - 1;
    double bin = (log2(fmax(ns, 1)) - set->lowest) * BINS_PER_OCTAVE;
    return bin < 0 ? 0 : (unsigned)bin;
}

static void latency_range(const struct latency_set *set, double *low, double *high)
{
    size_t last = set->count;
    while (last > 0 && isinf(set->sorted[last - 1]))
        last--;
    *low = last ? fmax(set->sorted[0], 1) : 1;
    *high = last ? fmax(set->sorted[last - 1], 1) : 1;
}

static int count_blocks(struct latency_set *set, const struct latency_run_array *runs)
{
    double low, high;
    latency_range(set, &low, &high);
    set->lowest = floor(log2(low));
    set->bins = (unsigned)((log2(high) - set->lowest) * BINS_PER_OCTAVE) + 2;
    set->up_to = calloc(set->runs * RESAMPLE_BLOCKS * set->bins, sizeof *set->up_to);
    if (!set->up_to)
        return -1;
    for (size_t r = 0; r < set->runs; r++)
        for (size_t i = 0; i < runs->items[r].count; i++) {
            size_t block = i * RESAMPLE_BLOCKS / runs->items[r].count;
            uint32_t *bins = set->up_to + (r * RESAMPLE_BLOCKS + block) * set->bins;
            bins[bin_of(set, runs->items[r].items[i])]++;
        }
    for (size_t block = 0; block < set->runs * RESAMPLE_BLOCKS; block++)
        for (unsigned bin = 1; bin < set->bins; bin++)
            set->up_to[block * set->bins + bin] += set->up_to[block * set->bins + bin - 1];
    return 0;
}

int latency_set_make(const struct latency_run_array *runs, struct latency_set **out,
                     struct error *err)
{
    struct latency_set *set = *out = calloc(1, sizeof *set);
    if (!set)
        return error_set(err, ERROR_FAILED, "out of memory for latencies");
    set->runs = runs->count;
    for (size_t r = 0; r < runs->count; r++) {
        if (runs->items[r].count == 0)
            return error_set(err, ERROR_INPUT, "run %zu has not one request", r + 1);
        set->count += runs->items[r].count;
    }
    set->sorted = malloc(set->count * sizeof *set->sorted);
    set->unanswered = calloc(runs->count, sizeof *set->unanswered);
    set->requests = calloc(runs->count, sizeof *set->requests);
    set->resample = resample_alloc(runs->count);
    if (!set->sorted || !set->unanswered || !set->requests || !set->resample)
        return error_set(err, ERROR_FAILED, "out of memory for %s latencies",
                         TEXT_COUNT(set->count));
    double *to = set->sorted;
    for (size_t r = 0; r < runs->count; r++) {
        const struct latency_run *run = &runs->items[r];
        memcpy(to, run->items, run->count * sizeof *to);
        to += run->count;
        set->requests[r] = run->count;
        for (size_t i = 0; i < run->count; i++)
            set->unanswered[r] += isinf(run->items[i]) != 0;
    }
    quantile_sort(set->sorted, set->count);
    if (count_blocks(set, runs) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for %s latencies",
                         TEXT_COUNT(set->count));
    return 0;
}

const double *latency_set_sorted(const struct latency_set *set, size_t *count)
{
    *count = set->count;
    return set->sorted;
}

void latency_set_free(struct latency_set *set)
{
    if (!set)
        return;
    free(set->sorted);
    free(set->unanswered);
    free(set->requests);
    free(set->up_to);
    resample_free(set->resample);
    free(set);
}

static double weighted_up_to(const struct latency_set *set, const uint16_t *weights, unsigned bin)
{
    double sum = 0;
    for (size_t block = 0; block < set->runs * RESAMPLE_BLOCKS; block++)
        if (weights[block])
            sum += weights[block] * (double)set->up_to[block * set->bins + bin];
    return sum;
}

// The natural logarithm of the weighted percentile.
static double log_percentile(const void *context, const uint16_t *weights)
{
    const struct figure_context *figure = context;
    const struct latency_set *set = figure->set;
    double rank = figure->quantile * weighted_up_to(set, weights, set->bins - 1);
    // the first bin that reaches the rank
    unsigned low = (unsigned)array_bound(0, set->bins - 1, at,
                                         weighted_up_to(set, weights, (unsigned)at) < rank);
    if (low == set->bins - 1)
        return INFINITY;
    double below = low ? weighted_up_to(set, weights, low - 1) : 0,
           within = weighted_up_to(set, weights, low) - below;
    double part = within > 0 ? (rank - below) / within : 0;
    return (set->lowest + (low + part) / BINS_PER_OCTAVE) * M_LN2;
}

static bool in_every_run_never(const struct latency_set *set, double quantile)
{
    for (size_t r = 0; r < set->runs; r++)
        if ((double)(set->requests[r] - set->unanswered[r]) >= quantile * (double)set->requests[r])
            return false;
    return true;
}

static void take_side(const struct latency_set *set, int side, double confidence,
                      struct percentile_shift *out)
{
    const struct figure_context context = {set, out->quantile};
    out->ns[side] = quantile_if_seen(quantile_sorted(set->sorted, set->count, out->quantile),
                                     set->count, out->quantile);
    out->never[side] = in_every_run_never(set, out->quantile);
    out->spread[side] = resample_spread(set->resample, log_percentile, &context);
    double beyond = (double)set->count * (1 - out->quantile);
    out->known &=
        isfinite(out->ns[side]) && isfinite(out->spread[side].error) && beyond >= LEAST_BEYOND;
    if (!out->known)
        return;
    struct resample_interval interval =
        resample_single(log(fmax(out->ns[side], 1)), &out->spread[side], confidence);
    interval.low = exp(interval.low);
    interval.high = exp(interval.high);
    out->ns_interval[side] = interval;
}

void percentile_of(const struct latency_set *set, double quantile, double confidence,
                   struct percentile_shift *out)
{
    *out = (struct percentile_shift){
        .quantile = quantile, .known = true, .shift = NAN, .ns = {NAN, NAN}};
    take_side(set, COMPARE_CANDIDATE, confidence, out);
}

struct resample_interval percentile_shift_interval(const struct percentile_shift *shift,
                                                   double confidence)
{
    if (!shift->known)
        return (struct resample_interval){.low = NAN, .high = NAN};
    struct resample_interval interval =
        resample_difference(log1p(shift->shift), &shift->spread[COMPARE_BASE],
                            &shift->spread[COMPARE_CANDIDATE], confidence);
    interval.low = expm1(interval.low);
    interval.high = expm1(interval.high);
    return interval;
}

void percentile_shift(const struct latency_set *const sides[COMPARE_SIDES], double quantile,
                      double confidence, struct percentile_shift *out)
{
    *out = (struct percentile_shift){.quantile = quantile, .known = true};
    for (int side = 0; side < COMPARE_SIDES; side++)
        take_side(sides[side], side, confidence, out);
    out->shift = out->ns[COMPARE_CANDIDATE] / fmax(out->ns[COMPARE_BASE], 1) - 1; // NaN: inf / inf
    out->interval = percentile_shift_interval(out, confidence);
}
