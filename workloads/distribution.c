// SPDX-License-Identifier: MIT
#include "workloads/distribution.h"
#include "base/array.h"

#include <math.h>
#include <stdlib.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_randist.h>

const char *distribution_name(enum distribution_kind kind)
{
    static const char *const names[DISTRIBUTION_KINDS] = {
        [DISTRIBUTION_FIXED] = "fixed",
        [DISTRIBUTION_UNIFORM] = "uniform",
        [DISTRIBUTION_EXPONENTIAL] = "exponential",
        [DISTRIBUTION_NORMAL] = "normal",
        [DISTRIBUTION_LOGNORMAL] = "lognormal",
        [DISTRIBUTION_PARETO] = "pareto",
        [DISTRIBUTION_GPD] = "gpd",
        [DISTRIBUTION_GEV] = "gev",
        [DISTRIBUTION_BIMODAL] = "bimodal",
        [DISTRIBUTION_EMPIRICAL] = "empirical",
    };
    return kind < DISTRIBUTION_KINDS ? names[kind] : "unknown";
}

// (e^(shape x) - 1) / shape, which is x for shape 0: GPD's and GEV's tails have no special case.
static double growth_scaled(double shape, double x)
{
    return fabs(shape) > 1e-12 ? expm1(shape * x) / shape : x;
}

static double table_quantile(const struct distribution_table *table, double p)
{
    return table->values[array_bound(0, table->count - 1, at, table->fractions[at] <= p)];
}

// Before values below 0 are set to 0.
static double raw_quantile(const struct distribution *d, double p)
{
    switch (d->kind) {
    case DISTRIBUTION_FIXED:
        return d->first;
    case DISTRIBUTION_UNIFORM:
        // GSL refuses an interval without width.
        return d->first + p * (d->second - d->first);
    case DISTRIBUTION_EXPONENTIAL:
        return gsl_cdf_exponential_Pinv(p, d->first);
    case DISTRIBUTION_NORMAL:
        return p > 0 ? d->first + gsl_cdf_gaussian_Pinv(p, d->second) : 0;
    case DISTRIBUTION_LOGNORMAL:
        return p > 0 ? gsl_cdf_lognormal_Pinv(p, log(d->first), d->second) : 0;
    case DISTRIBUTION_PARETO:
        return gsl_cdf_pareto_Pinv(p, d->second, d->first);
    case DISTRIBUTION_GPD: // Coles 2001, 4.2
        return d->first + d->second * growth_scaled(d->third, -log1p(-p));
    case DISTRIBUTION_GEV: // Coles 2001, 3.1
        return p > 0 ? d->first + d->second * growth_scaled(d->third, -log(-log(p))) : 0;
    case DISTRIBUTION_BIMODAL:
        return p < 1 - d->third ? d->first : d->second;
    case DISTRIBUTION_EMPIRICAL:
        return table_quantile(d->table, p);
    case DISTRIBUTION_KINDS:
        break;
    }
    return NAN;
}

double distribution_quantile(const struct distribution *distribution, double p)
{
    return fmax(raw_quantile(distribution, p), 0);
}

double distribution_sample(const struct distribution *distribution, gsl_rng *random)
{
    switch (distribution->kind) {
    case DISTRIBUTION_FIXED:
        return distribution->first;
    case DISTRIBUTION_EXPONENTIAL:
        return gsl_ran_exponential(random, distribution->first);
    default: // by inversion: one random number per value
        return distribution_quantile(distribution, gsl_rng_uniform(random));
    }
}

static double negative_part(double p, void *context)
{
    return fmin(raw_quantile(context, p), 0);
}

// How much the mean grows by setting values below 0 to 0: the integral of those quantiles. Only
// normal and GEV have any, and GEV's is not known in closed form.
static double cut_off_mean(const struct distribution *distribution)
{
    struct distribution copy = *distribution;
    enum { INTERVALS = 1000 };
    gsl_function function = {negative_part, &copy};
    double low = 1e-300, high = 1, result = 0, error;
    if (raw_quantile(distribution, low) >= 0)
        return 0;
    for (unsigned i = 0; i < 200; i++) { // where the quantiles cross 0
        double middle = low + (high - low) / 2;
        if (raw_quantile(distribution, middle) < 0)
            low = middle;
        else
            high = middle;
    }
    gsl_integration_workspace *workspace = gsl_integration_workspace_alloc(INTERVALS);
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    if (workspace)
        gsl_integration_qags(&function, 0, low, 0, 1e-9, INTERVALS, workspace, &result, &error);
    gsl_set_error_handler(handler);
    gsl_integration_workspace_free(workspace);
    return -result;
}

static double gev_mean(const struct distribution *d)
{
    if (d->third >= 1)
        return INFINITY;
    double standard = fabs(d->third) > 1e-9 ? (tgamma(1 - d->third) - 1) / d->third : M_EULER;
    return d->first + d->second * standard;
}

double distribution_mean(const struct distribution *d)
{
    double sum = 0;
    switch (d->kind) {
    case DISTRIBUTION_FIXED:
    case DISTRIBUTION_EXPONENTIAL:
        return d->first;
    case DISTRIBUTION_UNIFORM:
        return (d->first + d->second) / 2;
    case DISTRIBUTION_NORMAL:
        return d->first * gsl_cdf_gaussian_P(d->first, d->second) +
               d->second * d->second * gsl_ran_gaussian_pdf(d->first, d->second);
    case DISTRIBUTION_LOGNORMAL:
        return d->first * exp(d->second * d->second / 2);
    case DISTRIBUTION_PARETO:
        return d->second > 1 ? d->first * d->second / (d->second - 1) : INFINITY;
    case DISTRIBUTION_GPD:
        return d->third < 1 ? d->first + d->second / (1 - d->third) : INFINITY;
    case DISTRIBUTION_GEV:
        return gev_mean(d) + cut_off_mean(d);
    case DISTRIBUTION_BIMODAL:
        return d->first * (1 - d->third) + d->second * d->third;
    case DISTRIBUTION_EMPIRICAL:
        for (size_t i = 0; i < d->table->count; i++)
            sum += d->table->values[i] *
                   (d->table->fractions[i] - (i ? d->table->fractions[i - 1] : 0));
        return sum;
    case DISTRIBUTION_KINDS:
        break;
    }
    return NAN;
}

void distribution_free(struct distribution *distribution)
{
    struct distribution_table *table = distribution->table;
    if (!table)
        return;
    free(table->values);
    free(table->fractions);
    free(table->path);
    free(table);
    distribution->table = NULL;
}

// --- which key -----------------------------------------------------------------------------------

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
static double hat_density(double exponent, double x)
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
    sampler->accept_below = 2 - hat_integral_inverse(s, hat_integral(s, 2.5) - hat_density(s, 2));
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
        if (k - x <= sampler->accept_below || u >= hat_integral(s, k + 0.5) - hat_density(s, k))
            return (uint64_t)k - 1;
    }
}

double popularity_probability(const struct popularity *popularity, uint64_t count, uint64_t rank)
{
    if (popularity->kind == POPULARITY_UNIFORM)
        return 1 / (double)count;
    double sum = 0;
    for (uint64_t k = count; k > 0; k--) // smallest first keeps the sum exact
        sum += hat_density(popularity->exponent, (double)k);
    return hat_density(popularity->exponent, (double)rank + 1) / sum;
}
