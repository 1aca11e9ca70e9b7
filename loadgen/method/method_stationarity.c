// SPDX-License-Identifier: MIT
#include "loadgen/method/method_stationarity.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fit.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_poly.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantile.h"
#include "base/text.h"
#include "loadgen/method/method_independence.h"

enum {
    WINDOWS_MOST = 200,
    WINDOWS_LEAST = 30,
    BATCHES = 20,        // coarser windows, for the errors of what is compared
    WINDOW_SAMPLES = 20, // the smallest number of values to take a median of
};

// One tolerance for the median, wherever it is compared: docs/method.md says what it finds and what
// it lets pass. Tails vary more.
static const double median_tolerance = 0.40;
static const double target_tolerance = 0.50;
static const double least_change_us = 5;        // whatever the ratio
static const double change_significance = 1e-3; // three tests of one load share its false alarms
static const double warm_up_tolerance = 0.10;   // a start this close to the rest is no warm-up

// --- augmented Dickey-Fuller ---------------------------------------------------------------------

double dickey_fuller_critical(enum dickey_fuller_level level, size_t observations)
{
    static const double surface[3][4] = {{-3.43035, -6.5393, -16.786, -79.433},
                                         {-2.86154, -2.8903, -4.234, -40.040},
                                         {-2.56677, -1.5384, -2.809, 0}};
    return gsl_poly_eval(surface[level], 4, 1 / (double)observations);
}

double dickey_fuller_p(double statistic)
{
    static const double left[] = {2.1659, 1.4412, 0.038269};
    static const double right[] = {1.7339, 0.93202, -0.12745, -0.010368};
    if (isnan(statistic))
        return NAN;
    if (statistic < -18.83)
        return 0;
    if (statistic > 2.74)
        return 1;
    return gsl_cdf_ugaussian_P(statistic <= -1.61 ? gsl_poly_eval(left, 3, statistic)
                                                  : gsl_poly_eval(right, 4, statistic));
}

struct regression {
    double statistic;
    double akaike;
};

// With `lags` lagged differences, using the differences from `first` on (so that regressions with
// different lags can be compared over the same data). Returns false when it says nothing.
static bool differences_regress(const double *series, size_t count, size_t lags, size_t first,
                                struct regression *result)
{
    size_t rows = count - 1 - first, columns = 2 + lags;
    bool said = false;
    if (rows <= columns + 1)
        return false;
    gsl_matrix *predictors = gsl_matrix_alloc(rows, columns);
    gsl_matrix *covariance = gsl_matrix_alloc(columns, columns);
    gsl_vector *differences = gsl_vector_alloc(rows), *coefficients = gsl_vector_alloc(columns);
    gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc(rows, columns);
    for (size_t row = 0; row < rows; row++) {
        size_t t = first + row; // the difference series[t + 1] - series[t]
        gsl_vector_set(differences, row, series[t + 1] - series[t]);
        gsl_matrix_set(predictors, row, 0, 1);
        gsl_matrix_set(predictors, row, 1, series[t]);
        for (size_t lag = 1; lag <= lags; lag++)
            gsl_matrix_set(predictors, row, 1 + lag, series[t + 1 - lag] - series[t - lag]);
    }
    double squares;
    gsl_multifit_linear(predictors, differences, coefficients, covariance, &squares, work);
    double deviation = sqrt(gsl_matrix_get(covariance, 1, 1));
    if (squares > 0 && deviation > 0) {
        result->statistic = gsl_vector_get(coefficients, 1) / deviation;
        result->akaike = (double)rows * log(squares / (double)rows) + 2 * (double)columns;
        said = isfinite(result->statistic) && isfinite(result->akaike);
    }
    gsl_multifit_linear_free(work);
    gsl_vector_free(coefficients);
    gsl_vector_free(differences);
    gsl_matrix_free(covariance);
    gsl_matrix_free(predictors);
    return said;
}

static size_t most_lags(size_t count)
{
    size_t schwert = (size_t)ceil(12 * pow((double)count / 100, 0.25)), half = count / 2 - 2;
    return schwert < half ? schwert : half;
}

void dickey_fuller_test(const double *series, size_t count, struct dickey_fuller *result)
{
    struct regression found, best = {.akaike = INFINITY};
    *result = (struct dickey_fuller){.statistic = NAN, .p = NAN, .critical = {NAN, NAN, NAN}};
    if (count < 10)
        return;
    size_t most = most_lags(count);
    for (size_t lags = 0; lags <= most; lags++) {
        if (differences_regress(series, count, lags, most, &found) && found.akaike < best.akaike) {
            best = found;
            result->lags = lags;
            result->known = true;
        }
    }
    // Repeats the regression with every difference that this number of lags leaves.
    result->known =
        result->known && differences_regress(series, count, result->lags, result->lags, &best);
    if (!result->known)
        return;
    result->observations = count - 1 - result->lags;
    result->statistic = best.statistic;
    result->p = dickey_fuller_p(best.statistic);
    for (unsigned level = DICKEY_FULLER_1; level <= DICKEY_FULLER_10; level++)
        result->critical[level] = dickey_fuller_critical(level, result->observations);
}

// --- warm-up -------------------------------------------------------------------------------------

size_t warm_up_length(const double *series, size_t count)
{
    // From the end: the mean and the squared deviations of the last n values, by Welford's
    // recurrence.
    double mean = 0, squares = 0, least = INFINITY;
    size_t length = 0;
    for (size_t n = 1; n <= count; n++) {
        double delta = series[count - n] - mean;
        mean += delta / (double)n;
        squares += delta * (series[count - n] - mean);
        double error = squares / ((double)n * (double)n);
        if (n >= count - count / 2 && error <= least) {
            least = error;
            length = count - n;
        }
    }
    return length;
}

// Medians of `windows` equal windows, in time order. Room for `windows` in medians.
static int window_medians(const double *values, size_t count, size_t windows, double *medians,
                          struct error *err)
{
    size_t size = count / windows;
    double *work = malloc((size + 1) * sizeof *work);
    if (!work)
        return error_set(err, ERROR_FAILED, "out of memory for windows of %s samples",
                         TEXT_COUNT(size));
    for (size_t i = 0; i < windows; i++)
        medians[i] = quantile_of(values + i * size, size, 0.5, work);
    free(work);
    return 0;
}

// How many windows this many samples make; 0: too few.
static size_t count_windows(size_t count)
{
    size_t windows = count / WINDOW_SAMPLES;
    return windows < WINDOWS_LEAST ? 0 : windows > WINDOWS_MOST ? WINDOWS_MOST : windows;
}

static bool all_finite(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

int stationarity_warm_up(const double *values, size_t count, size_t *warm_up, struct error *err)
{
    double medians[WINDOWS_MOST];
    size_t windows = count_windows(count);
    *warm_up = 0;
    if (windows == 0)
        return 0;
    int status = window_medians(values, count, windows, medians, err);
    if (status < 0 || !all_finite(medians, windows))
        return status;
    size_t length = warm_up_length(medians, windows);
    // A load still changing after a quarter of it is not warming up, it is not stationary.
    if (length > windows / 4)
        return 0;
    // The rule always finds some best length; a beginning like the rest is not worth cutting.
    double rest = quantile_of(medians + length, windows - length, 0.5, medians + length);
    double start = length ? quantile_of(medians, length, 0.5, medians) : rest;
    if (fabs(start - rest) > fmax(warm_up_tolerance * rest, least_change_us))
        *warm_up = length * (count / windows);
    return 0;
}

// --- the size of the change ----------------------------------------------------------------------

static bool change_matters(double one, double other, double tolerance)
{
    double low = fmin(one, other), high = fmax(one, other);
    return high - low > fmax(tolerance * low, least_change_us);
}

static double spread_of_quarters(double *work, const double *values, size_t count, bool *matter)
{
    double least = INFINITY, greatest = 0;
    size_t quarter = count / 4;
    for (size_t i = 0; i < 4; i++) {
        double median = quantile_of(values + i * quarter, quarter, 0.5, work);
        least = fmin(least, median);
        greatest = fmax(greatest, median);
    }
    *matter = change_matters(least, greatest, median_tolerance);
    return least > 0 ? greatest / least - 1 : NAN;
}

// The two-sided p-value of a difference between means, or of a slope, with that standard error for
// `count` residuals that are worth only `effective` independent ones.
static double p_of(double difference, double error, double count, double effective)
{
    double freedom = fmax(effective - 2, 1);
    if (difference == 0 || error == 0)
        return difference == 0;
    return 2 * gsl_cdf_tdist_Q(fabs(difference) / (error * sqrt(count / effective)), freedom);
}

// Of a few values: how many are less, and half of those that are alike.
static void rank_all(const double values[BATCHES], double ranks[BATCHES])
{
    for (size_t i = 0; i < BATCHES; i++) {
        ranks[i] = 0;
        for (size_t k = 0; k < BATCHES; k++)
            ranks[i] += values[k] < values[i] ? 1 : values[k] == values[i] ? 0.5 : 0;
    }
}

// The line through the batches' medians that has the median of all slopes between two of them
// (Theil and Sen; Sen, "Estimates of the regression coefficient based on Kendall's tau", Journal of
// the American Statistical Association 63, 1968), and how sure its direction is: by the slope of
// the medians' ranks, whose residuals may depend on one another. A stall, however long, is one
// rank: least squares would see the stall and not the drift around it.
static void find_trend(const double *medians, size_t windows, struct trend *trend)
{
    double x[BATCHES], coarse[BATCHES], residuals[BATCHES];
    double slopes[BATCHES * (BATCHES - 1) / 2], work[BATCHES * BATCHES];
    double begin, slope, covariance[3], squares;
    size_t pairs = 0;
    for (size_t i = 0; i < BATCHES; i++) {
        size_t from = i * windows / BATCHES, to = (i + 1) * windows / BATCHES;
        x[i] = ((double)i + 0.5) / BATCHES;
        coarse[i] = quantile_of(medians + from, to - from, 0.5, work);
        for (size_t k = 0; k < i; k++)
            slopes[pairs++] = (coarse[i] - coarse[k]) / (x[i] - x[k]);
    }
    slope = quantile_of(slopes, pairs, 0.5, work);
    for (size_t i = 0; i < BATCHES; i++)
        residuals[i] = coarse[i] - slope * x[i];
    trend->begin = quantile_of(residuals, BATCHES, 0.5, work);
    trend->end = trend->begin + slope;
    rank_all(coarse, residuals);
    gsl_fit_linear(x, 1, residuals, 1, BATCHES, &begin, &slope, &covariance[0], &covariance[1],
                   &covariance[2], &squares);
    for (size_t i = 0; i < BATCHES; i++)
        residuals[i] -= begin + slope * x[i];
    trend->p = p_of(slope, sqrt(covariance[2]), BATCHES, independence_worth(residuals, BATCHES));
    trend->matters = trend->p < change_significance &&
                     change_matters(fmax(trend->begin, 0), fmax(trend->end, 0), median_tolerance);
}

// Of two quantiles at once. For both halves, how often the samples of a batch lie beyond the whole
// load's quantile: a single stall affects one batch, a slower server all batches of a half.
static void compare_halves(const double *values, size_t count, const double q[2],
                           const double tolerance[2], double *work,
                           struct half_quantile *const results[2])
{
    const size_t half = count / 2, size = count / BATCHES;
    double whole[2], first[2], second[2];
    quantile_pair_of(values, count, q, work, whole);
    quantile_pair_of(values, half, q, work, first);
    quantile_pair_of(values + half, count - half, q, work, second);
    for (size_t k = 0; k < 2; k++) {
        double beyond[BATCHES], means[2], variance = 0;
        for (size_t i = 0; i < BATCHES; i++)
            beyond[i] = (double)count_above(values + i * size, size, whole[k]);
        for (size_t i = 0; i < 2; i++) {
            double *batches = beyond + i * BATCHES / 2;
            means[i] = gsl_stats_mean(batches, 1, BATCHES / 2);
            variance += gsl_stats_variance_m(batches, 1, BATCHES / 2, means[i]) / (BATCHES / 2);
        }
        for (size_t i = 0; i < BATCHES; i++)
            beyond[i] -= means[i / (BATCHES / 2)];
        struct half_quantile *result = results[k];
        *result = (struct half_quantile){.first = first[k],
                                         .second = second[k],
                                         .p = p_of(means[1] - means[0], sqrt(variance), BATCHES,
                                                   independence_worth(beyond, BATCHES))};
        result->differs = result->p < change_significance &&
                          change_matters(result->first, result->second, tolerance[k]);
    }
}

int stationarity_judge(const double *values, size_t count, double q, struct stationarity *result,
                       struct error *err)
{
    double medians[WINDOWS_MOST];
    *result = (struct stationarity){.stationary = true};
    result->windows = count_windows(count);
    if (result->windows == 0)
        return 0;
    double *work = malloc(count * sizeof *work);
    if (!work)
        return error_set(err, ERROR_FAILED, "out of memory for the quantiles of %s samples",
                         TEXT_COUNT(count));
    int status = window_medians(values, count, result->windows, medians, err);
    if (status == 0 && all_finite(medians, result->windows)) {
        bool quarters_differ;
        result->judged = true;
        dickey_fuller_test(medians, result->windows, &result->dickey_fuller);
        result->quarters_spread = spread_of_quarters(work, values, count, &quarters_differ);
        find_trend(medians, result->windows, &result->trend);
        compare_halves(values, count, (const double[]){0.5, q},
                       (const double[]){median_tolerance, target_tolerance}, work,
                       (struct half_quantile *const[]){&result->median, &result->target});
        bool wanders = result->dickey_fuller.known &&
                       result->dickey_fuller.statistic > result->dickey_fuller.critical[1];
        result->wanders = wanders && quarters_differ;
        result->stationary = !result->wanders && !result->trend.matters &&
                             !result->median.differs && !result->target.differs;
    }
    free(work);
    return status;
}

// --- loads whose rate changes --------------------------------------------------------------------

static int judge_level(const double *values, double q, double *work, struct level *level,
                       struct error *err)
{
    size_t warm_up;
    int status = stationarity_warm_up(values, level->count, &warm_up, err);
    if (status < 0)
        return status;
    size_t rest = level->count - warm_up;
    level->median_us = quantile_of(values + warm_up, rest, 0.5, work);
    level->target_us = quantile_of(values + warm_up, rest, q, work);
    return stationarity_judge(values + warm_up, rest, q, &level->stationarity, err);
}

int levels_judge(const struct engine_result *run, const double *values,
                 const struct rate_pattern *pattern, double duration_s, double q,
                 struct levels *levels, struct error *err)
{
    *levels = (struct levels){0};
    if (pattern->kind != PATTERN_STEP || run->sample_count == 0)
        return 0;
    double *work = malloc(run->sample_count * sizeof *work);
    if (!work)
        return error_set(err, ERROR_FAILED, "out of memory for the levels of %s requests",
                         TEXT_COUNT(run->sample_count));
    size_t first = 0;
    int status = 0;
    for (unsigned i = 0; i < pattern->count && status == 0; i++) {
        double end_s = duration_s * (i + 1) / pattern->count;
        size_t end = first;
        while (end < run->sample_count &&
               (double)(run->samples[end].intended_tsc - run->start_tsc) / run->tsc_hz < end_s)
            end++;
        struct level *level = &levels->items[levels->count++];
        *level = (struct level){.factor = pattern->values[i], .count = end - first};
        status = judge_level(values + first, q, work, level, err);
        first = end;
    }
    free(work);
    return status;
}

const struct level *levels_unsteady(const struct levels *levels)
{
    for (unsigned i = 0; i < levels->count; i++)
        if (!levels->items[i].stationarity.stationary)
            return &levels->items[i];
    return NULL;
}
