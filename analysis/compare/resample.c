// SPDX-License-Identifier: MIT
#include "analysis/compare/resample.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum level { LEVEL_RUNS, LEVEL_BLOCKS };

static void draw(gsl_rng *random, enum level level, size_t runs, uint16_t *weights)
{
    memset(weights, 0, runs * RESAMPLE_BLOCKS * sizeof *weights);
    for (size_t i = 0; i < runs; i++) {
        uint16_t *run = weights + RESAMPLE_BLOCKS *
                                      (level == LEVEL_RUNS ? gsl_rng_uniform_int(random, runs) : i);
        for (unsigned b = 0; b < RESAMPLE_BLOCKS; b++)
            run[level == LEVEL_RUNS ? b : gsl_rng_uniform_int(random, RESAMPLE_BLOCKS)]++;
    }
}

static double variance(gsl_rng *random, enum level level, resample_figure figure,
                       const void *context, size_t runs, uint16_t *weights)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < RESAMPLES; i++) {
        draw(random, level, runs, weights);
        double value = figure(context, weights);
        if (!isfinite(value))
            return INFINITY;
        double step = value - mean;
        mean += step / (i + 1);
        squares += step * (value - mean);
    }
    return squares / (RESAMPLES - 1);
}

int resample_spread(resample_figure figure, const void *context, size_t runs,
                    struct resample_spread *out)
{
    uint16_t *weights = calloc(runs * RESAMPLE_BLOCKS, sizeof *weights);
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    int result = weights && random ? 0 : -1;
    if (result == 0) {
        gsl_rng_set(random, RESAMPLE_SEED);
        double within = variance(random, LEVEL_BLOCKS, figure, context, runs, weights), all = 0;
        if (runs > 1)
            all = variance(random, LEVEL_RUNS, figure, context, runs, weights) * (double)runs /
                  (double)(runs - 1);
        *out = (struct resample_spread){.error = sqrt(fmax(all, within)), .runs = runs};
    }
    gsl_rng_free(random);
    free(weights);
    return result;
}

static struct resample_interval around(double figure, double error, double freedom, bool between,
                                       double confidence)
{
    double tail = (1 - confidence) / 2;
    double width = 0; // no scatter at all is an interval of no width
    if (error > 0)
        width =
            error * (between ? gsl_cdf_tdist_Qinv(tail, freedom) : gsl_cdf_ugaussian_Qinv(tail));
    return (struct resample_interval){
        .low = figure - width, .high = figure + width, .between_runs = between};
}

struct resample_interval resample_difference(double difference, const struct resample_spread *base,
                                             const struct resample_spread *candidate,
                                             double confidence)
{
    double one = base->error * base->error, other = candidate->error * candidate->error,
           both = one + other, freedom = 1;
    bool between = base->runs > 1 && candidate->runs > 1;
    if (between && both > 0 && isfinite(both))
        freedom =
            both * both /
            (one * one / (double)(base->runs - 1) + other * other / (double)(candidate->runs - 1));
    return around(difference, sqrt(both), freedom, between, confidence);
}

struct resample_interval resample_single(double figure, const struct resample_spread *spread,
                                         double confidence)
{
    return around(figure, spread->error, (double)spread->runs - 1, spread->runs > 1, confidence);
}
