// SPDX-License-Identifier: MIT
#include "workloads/distribution.h"

#include <math.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>

const char *distribution_name(enum distribution_kind kind)
{
    switch (kind) {
    case DISTRIBUTION_FIXED:
        return "fixed";
    case DISTRIBUTION_UNIFORM:
        return "uniform";
    case DISTRIBUTION_EXPONENTIAL:
        return "exponential";
    }
    return "unknown";
}

double distribution_sample(const struct distribution *distribution, gsl_rng *random)
{
    switch (distribution->kind) {
    case DISTRIBUTION_FIXED:
        return distribution->first;
    case DISTRIBUTION_UNIFORM:
        return gsl_ran_flat(random, distribution->first, distribution->second);
    case DISTRIBUTION_EXPONENTIAL:
        return gsl_ran_exponential(random, distribution->first);
    }
    return NAN;
}

double distribution_quantile(const struct distribution *distribution, double p)
{
    switch (distribution->kind) {
    case DISTRIBUTION_FIXED:
        return distribution->first;
    case DISTRIBUTION_UNIFORM:
        // GSL refuses an interval without width.
        return distribution->first + p * (distribution->second - distribution->first);
    case DISTRIBUTION_EXPONENTIAL:
        return gsl_cdf_exponential_Pinv(p, distribution->first);
    }
    return NAN;
}

double distribution_mean(const struct distribution *distribution)
{
    return distribution->kind == DISTRIBUTION_UNIFORM
               ? (distribution->first + distribution->second) / 2
               : distribution->first;
}

// expm1(x) / x and log1p(x) / x, continuous at 0, so that exponent 1 needs no case of its own.
static double expm1_over(double x)
{
    return fabs(x) > 1e-8 ? expm1(x) / x : 1 + x / 2 * (1 + x / 3);
}

static double log1p_over(double x)
{
    return fabs(x) > 1e-8 ? log1p(x) / x : 1 - x * (0.5 - x / 3);
}

// The hat x^-s, its integral from 1, and the inverse of that.
static double hat(double exponent, double x)
{
    return exp(-exponent * log(x));
}

static double hat_integral(double exponent, double x)
{
    return expm1_over((1 - exponent) * log(x)) * log(x);
}

static double hat_integral_inverse(double exponent, double integral)
{
    double t = integral * (1 - exponent);
    return exp(log1p_over(t < -1 ? -1 : t) * integral); // rounding may reach below -1
}

void rank_sampler_init(struct rank_sampler *sampler, const struct popularity *popularity,
                       uint64_t count)
{
    double s = popularity->exponent;
    *sampler = (struct rank_sampler){.popularity = *popularity, .count = count};
    if (popularity->kind != POPULARITY_ZIPF)
        return;
    sampler->integral_low = hat_integral(s, 1.5) - 1;
    sampler->integral_high = hat_integral(s, (double)count + 0.5);
    sampler->accept_below = 2 - hat_integral_inverse(s, hat_integral(s, 2.5) - hat(s, 2));
}

uint64_t rank_sample(const struct rank_sampler *sampler, gsl_rng *random)
{
    double s = sampler->popularity.exponent, count = (double)sampler->count;
    if (sampler->popularity.kind == POPULARITY_UNIFORM) {
        uint64_t rank = (uint64_t)(gsl_rng_uniform(random) * count);
        return rank < sampler->count ? rank : sampler->count - 1;
    }
    for (;;) {
        double u = sampler->integral_high +
                   gsl_rng_uniform(random) * (sampler->integral_low - sampler->integral_high);
        double x = hat_integral_inverse(s, u);
        double k = floor(x + 0.5);
        k = k < 1 ? 1 : k > count ? count : k;
        if (k - x <= sampler->accept_below || u >= hat_integral(s, k + 0.5) - hat(s, k))
            return (uint64_t)k - 1;
    }
}

double popularity_probability(const struct popularity *popularity, uint64_t count, uint64_t rank)
{
    if (popularity->kind == POPULARITY_UNIFORM)
        return 1 / (double)count;
    double sum = 0;
    for (uint64_t k = count; k > 0; k--) // smallest first keeps the sum exact
        sum += hat(popularity->exponent, (double)k);
    return hat(popularity->exponent, (double)rank + 1) / sum;
}
