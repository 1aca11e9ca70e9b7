// SPDX-License-Identifier: MIT
#include "analysis/compare/resample.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>

enum level { LEVEL_BLOCKS, LEVEL_RUNS, LEVELS };

static void draw_weights(gsl_rng *random, enum level level, size_t runs, uint16_t *weights)
{
    for (size_t i = 0; i < runs; i++) {
        uint16_t *run = weights + RESAMPLE_BLOCKS *
                                      (level == LEVEL_RUNS ? gsl_rng_uniform_int(random, runs) : i);
        for (unsigned b = 0; b < RESAMPLE_BLOCKS; b++)
            run[level == LEVEL_RUNS ? b : gsl_rng_uniform_int(random, RESAMPLE_BLOCKS)]++;
    }
}

struct resample {
    size_t runs;
    uint16_t *weights; // [level][draw][run][block]
};

static uint16_t *weights_of(const struct resample *resample, enum level level, int number)
{
    size_t draws = (size_t)level * RESAMPLES + (size_t)number;
    return resample->weights + draws * resample->runs * RESAMPLE_BLOCKS;
}

struct resample *resample_alloc(size_t runs)
{
    struct resample *resample = calloc(1, sizeof *resample);
    gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
    size_t bytes = runs * RESAMPLE_BLOCKS * sizeof *resample->weights;
    if (resample)
        resample->weights = calloc(LEVELS * RESAMPLES, bytes);
    if (!random || !resample || !resample->weights) {
        gsl_rng_free(random);
        resample_free(resample);
        return NULL;
    }
    resample->runs = runs;
    gsl_rng_set(random, RESAMPLE_SEED);
    for (enum level level = LEVEL_BLOCKS; level < LEVELS; level++)
        for (int i = 0; i < RESAMPLES; i++)
            draw_weights(random, level, runs, weights_of(resample, level, i));
    gsl_rng_free(random);
    return resample;
}

void resample_free(struct resample *resample)
{
    if (resample)
        free(resample->weights);
    free(resample);
}

static double figure_variance(const struct resample *resample, enum level level,
                              resample_figure figure, const void *context)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < RESAMPLES; i++) {
        double value = figure(context, weights_of(resample, level, i));
        if (!isfinite(value))
            return INFINITY;
        double step = value - mean;
        mean += step / (i + 1);
        squares += step * (value - mean);
    }
    return squares / (RESAMPLES - 1);
}

struct resample_spread resample_spread(const struct resample *resample, resample_figure figure,
                                       const void *context)
{
    double runs = (double)resample->runs;
    double within = figure_variance(resample, LEVEL_BLOCKS, figure, context), all = 0;
    if (resample->runs > 1)
        all = figure_variance(resample, LEVEL_RUNS, figure, context) * runs / (runs - 1);
    return (struct resample_spread){.error = sqrt(fmax(all, within)), .runs = resample->runs};
}

static struct resample_interval interval_around(double figure, double error, double freedom,
                                                bool between, double confidence)
{
    double tail = (1 - confidence) / 2;
    double width = 0; // without any scatter the interval has no width
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
    return interval_around(difference, sqrt(both), freedom, between, confidence);
}

struct resample_interval resample_single(double figure, const struct resample_spread *spread,
                                         double confidence)
{
    return interval_around(figure, spread->error, (double)spread->runs - 1, spread->runs > 1,
                           confidence);
}
