// SPDX-License-Identifier: MIT
#include "loadgen/method/method_anderson_darling.h"

#include <math.h>
#include <gsl/gsl_poly.h>
#include <gsl/gsl_statistics_double.h>

static const double least_probability = 1e-12;

#define POLYNOMIAL(x, ...)                                                                         \
    gsl_poly_eval((const double[]){__VA_ARGS__},                                                   \
                  sizeof((const double[]){__VA_ARGS__}) / sizeof(double), x)

double exponential_function(double value, const void *mean)
{
    return value > 0 ? -expm1(-value / *(const double *)mean) : 0;
}

static double probability_clamp(double probability)
{
    return fmin(fmax(probability, least_probability), 1 - least_probability);
}

double anderson_darling(const double *sorted, size_t count, distribution_function function,
                        const void *parameters)
{
    double n = (double)count, sum = 0;
    if (count == 0)
        return NAN;
    // The sum of (2i - 1) (ln F(x_i) + ln(1 - F(x_{n+1-i}))), with each F asked for once.
    for (size_t i = 0; i < count; i++) {
        double probability = probability_clamp(function(sorted[i], parameters));
        double below = 2 * (double)i + 1;
        sum += below * log(probability) + (2 * n - below) * log1p(-probability);
    }
    return -n - sum / n;
}

// P(A^2 < statistic) for infinitely many values.
static double known_limit(double z)
{
    if (z <= 0)
        return 0;
    if (z < 2)
        return exp(-1.2337141 / z) / sqrt(z) *
               POLYNOMIAL(z, 2.00012, 0.247105, -0.0649821, 0.0347962, -0.011672, 0.00168691);
    return exp(-exp(POLYNOMIAL(z, 1.0776, -2.30695, 0.43424, -0.082433, 0.008056, -0.0003146)));
}

// What n values add to the limit's probability x.
static double known_correction(double x, double n)
{
    if (x > 0.8)
        return POLYNOMIAL(x, -130.2137, 745.2337, -1705.091, 1950.646, -1116.360, 255.7844) / n;
    double bend = 0.01265 + 0.1757 / n;
    if (x < bend) {
        double t = x / bend;
        return sqrt(t) * (1 - t) * (49 * t - 102) * (0.0037 / (n * n) + 0.00078 / n + 0.00006) / n;
    }
    double t = (x - bend) / (0.8 - bend);
    return POLYNOMIAL(t, -0.00022633, 6.54034, -14.6538, 14.458, -8.259, 1.91864) *
           (0.04213 + 0.01365 / n) / n;
}

double anderson_darling_p_known(double statistic, size_t count)
{
    // Where the approximations were not fitted any more: below 1e-30, and their polynomials turn.
    if (!(statistic < 32))
        return isnan(statistic) ? NAN : 0;
    double x = known_limit(statistic);
    return fmin(fmax(1 - x - known_correction(x, (double)count), 0), 1);
}

double anderson_darling_p_exponential(double statistic, size_t count)
{
    double a = statistic * (1 + 0.6 / (double)count);
    if (isnan(a))
        return NAN;
    if (a < 0.26)
        return 1 - exp(POLYNOMIAL(a, -12.2204, 67.459, -110.3));
    if (a < 0.51)
        return 1 - exp(POLYNOMIAL(a, -6.1327, 20.218, -18.663));
    if (a < 0.95)
        return exp(POLYNOMIAL(a, 0.9209, -3.353, 0.3));
    // The parabola turns at 10; from 5 on its tangent goes on down.
    if (a < 5)
        return exp(POLYNOMIAL(a, 0.731, -3.009, 0.15));
    return exp(POLYNOMIAL(5.0, 0.731, -3.009, 0.15) + (a - 5) * (-3.009 + 2 * 0.15 * 5));
}

double kolmogorov_smirnov_distance(const double *sorted, size_t count,
                                   distribution_function function, const void *parameters)
{
    double greatest = 0, n = (double)count;
    if (count == 0)
        return NAN;
    for (size_t i = 0; i < count; i++) {
        double probability = function(sorted[i], parameters);
        greatest =
            fmax(greatest, fmax((double)(i + 1) / n - probability, probability - (double)i / n));
    }
    return greatest;
}

void exponential_fit_sorted(const double *sorted, size_t count, double intended_mean,
                            struct exponential_fit *fit)
{
    double mean = gsl_stats_mean(sorted, 1, count);
    double known = anderson_darling(sorted, count, exponential_function, &intended_mean);
    double estimated = anderson_darling(sorted, count, exponential_function, &mean);
    *fit = (struct exponential_fit){.count = count,
                                    .mean = mean,
                                    .variation = gsl_stats_sd_m(sorted, 1, count, mean) / mean,
                                    .known_statistic = known,
                                    .known_p = anderson_darling_p_known(known, count),
                                    .estimated_statistic = estimated,
                                    .estimated_p = anderson_darling_p_exponential(estimated, count),
                                    .distance = kolmogorov_smirnov_distance(
                                        sorted, count, exponential_function, &intended_mean)};
}
