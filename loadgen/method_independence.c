// SPDX-License-Identifier: MIT
#include "loadgen/method_independence.h"

#include <math.h>
#include <stdlib.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>

enum {
    LEAST_VALUES = 50,
    MOST_VALUES = 100000, // ranked; of a longer series, so many from its middle
};

// Of each lag: with three lags one independent series in a hundred fails by chance.
static const double significance = 0.01 / INDEPENDENCE_LAGS;
// Correlations smaller than that widen an interval by less than a tenth, whatever their
// significance: of 100,000 values 0.01 is significant.
static const double negligible = 0.05;

struct rank_correlation rank_correlate(const double *x, const double *y, size_t count, double *work)
{
    struct rank_correlation result = {NAN, NAN};
    if (count < 3)
        return result;
    result.rho = gsl_stats_spearman(x, 1, y, 1, count, work);
    if (!isfinite(result.rho)) {
        result.rho = NAN; // nothing varies
        return result;
    }
    result.rho = fmin(fmax(result.rho, -1), 1);
    double freedom = (double)count - 2;
    double t = fabs(result.rho) * sqrt(freedom / ((1 + result.rho) * (1 - result.rho)));
    result.p = isfinite(t) ? fmin(2 * gsl_cdf_tdist_Q(t, freedom), 1) : 0;
    return result;
}

// True when no lag shows a correlation that is both significant and large enough to matter.
static bool correlate_lags(const double *values, size_t count, double *work,
                           struct rank_correlation lags[INDEPENDENCE_LAGS])
{
    bool independent = true;
    if (count > MOST_VALUES) {
        values += (count - MOST_VALUES) / 2;
        count = MOST_VALUES;
    }
    for (size_t lag = 1; lag <= INDEPENDENCE_LAGS; lag++) {
        struct rank_correlation found =
            rank_correlate(values, values + lag, count > lag ? count - lag : 0, work);
        lags[lag - 1] = found;
        if (fabs(found.rho) > negligible && found.p < significance)
            independent = false;
    }
    return independent;
}

size_t independence_thin(const double *values, size_t count, size_t thinning, double *kept)
{
    size_t taken = 0;
    for (size_t i = 0; i < count; i += thinning)
        kept[taken++] = values[i];
    return taken;
}

static size_t next_thinning(size_t thinning, size_t turn)
{
    do {
        thinning += thinning / 2 + 1;
        thinning |= 1; // connections often come in even numbers
    } while (turn > 1 && turn % thinning == 0);
    return thinning;
}

int independence_judge(const double *values, size_t count, size_t least, size_t turn,
                       struct independence *result, struct error *err)
{
    *result = (struct independence){.thinning = 1, .kept = count};
    if (least < LEAST_VALUES)
        least = LEAST_VALUES;
    if (count < least)
        return 0;
    size_t ranked = count < MOST_VALUES ? count : MOST_VALUES;
    double *kept = calloc(count, sizeof *kept), *work = calloc(2 * ranked, sizeof *work);
    if (kept && work) {
        result->judged = true;
        result->independent = correlate_lags(values, count, work, result->unthinned);
        for (unsigned i = 0; i < INDEPENDENCE_LAGS; i++)
            result->thinned[i] = result->unthinned[i];
        size_t thinning = 1;
        while (!result->independent &&
               count / (thinning = next_thinning(thinning, turn)) >= least) {
            result->thinning = thinning;
            result->kept = independence_thin(values, count, thinning, kept);
            result->independent = correlate_lags(kept, result->kept, work, result->thinned);
        }
    }
    free(kept);
    free(work);
    if (!result->judged)
        return error_set(err, ERROR_FAILED, "out of memory for the ranks of %zu samples", ranked);
    return 0;
}

double independence_worth(const double *residuals, size_t count)
{
    double products = 0, squares = 0, n = (double)count;
    for (size_t i = 0; i < count; i++) {
        squares += residuals[i] * residuals[i];
        products += i ? residuals[i] * residuals[i - 1] : 0;
    }
    if (!(squares > 0))
        return n;
    double rho = products / squares;
    rho = fmin(fmax(rho + (1 + 3 * rho) / n, 0), 0.95);
    return n * (1 - rho) / (1 + rho);
}
