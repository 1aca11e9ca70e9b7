// SPDX-License-Identifier: MIT
#include "loadgen/method/method_independence.h"

#include <math.h>
#include <stdlib.h>
#include <gsl/gsl_cdf.h>

#include "base/quantile.h"
#include "base/text.h"

enum {
    LEAST_VALUES = 50,
    MOST_VALUES = 100000,  // values that are ranked; of a longer series, this many from its middle
    GLANCE_VALUES = 10000, // and so many, to see whether a thinning is plainly not enough
    EVIDENCE_VALUES = 200000, // that a long series is thinned to ...
    EVIDENCE_BEYOND = 2000,   // ... or as many as leave so many beyond a percentile
};

// Of each lag: with three lags one independent series in a hundred fails by chance.
static const double significance = 0.01 / INDEPENDENCE_LAGS;
// Correlations smaller than that widen an interval by less than a tenth, however significant they
// are: with 100,000 values 0.01 is significant.
static const double negligible = 0.05;

bool rank_values(const double *values, size_t count, int32_t *ranks)
{
    uint32_t *order = malloc((count + 1) * sizeof *order);
    bool done = order && quantile_order(values, count, order);
    for (size_t first = 0, end; done && first < count; first = end) {
        end = first + 1;
        while (end < count && values[order[end]] == values[order[first]])
            end++;
        for (size_t i = first; i < end; i++)
            ranks[order[i]] = (int32_t)(first + 1 + end);
    }
    free(order);
    return done;
}

struct rank_correlation rank_correlate(const int32_t *x, const int32_t *y, size_t count)
{
    struct rank_correlation result = {NAN, NAN};
    if (count < 3)
        return result;
    const int64_t mean = (int64_t)count + 1; // of doubled ranks, with ties too
    int64_t products = 0, squares_x = 0, squares_y = 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t from_x = x[i] - mean, from_y = y[i] - mean;
        products += from_x * from_y;
        squares_x += from_x * from_x;
        squares_y += from_y * from_y;
    }
    if (squares_x == 0 || squares_y == 0)
        return result; // all values are alike
    result.rho = (double)products / sqrt((double)squares_x * (double)squares_y);
    result.rho = fmin(fmax(result.rho, -1), 1);
    double freedom = (double)count - 2;
    double t = fabs(result.rho) * sqrt(freedom / ((1 + result.rho) * (1 - result.rho)));
    result.p = isfinite(t) ? fmin(2 * gsl_cdf_tdist_Q(t, freedom), 1) : 0;
    return result;
}

// The doubled ranks among the given `count` values only, from ranks that also count `others`, whose
// ranks these are: of values that are alike they are alike, too. Four at a time, as every x86-64
// can: the compiler does not, at -O2.
static void rank_without(const int32_t *ranks, size_t count, const int32_t *others,
                         size_t other_count, int32_t *own)
{
    typedef int32_t four __attribute__((vector_size(16), aligned(4), may_alias));
    size_t i = 0;
    for (; i + 4 <= count; i += 4) { // a comparison that holds is -1: twice those below, those like
        four here = *(const four *)(ranks + i), less = here;
        for (size_t other = 0; other < other_count; other++)
            less += (others[other] < here) + (others[other] <= here);
        *(four *)(own + i) = less;
    }
    for (; i < count; i++) {
        own[i] = ranks[i];
        for (size_t other = 0; other < other_count; other++)
            own[i] -= (others[other] < ranks[i]) + (others[other] <= ranks[i]);
    }
}

struct rank_correlation rank_autocorrelate(const int32_t *ranks, size_t count, size_t lag,
                                           int32_t *work)
{
    const size_t pairs = count > lag ? count - lag : 0;
    rank_without(ranks, pairs, ranks + pairs, lag, work);
    rank_without(ranks + lag, pairs, ranks, lag, work + pairs);
    return rank_correlate(work, work + pairs, pairs);
}

// Says whether no lag shows a correlation that is both significant and large enough to matter.
// Of at most so many values, from the middle. work: room for three times that, or the count. False:
// out of memory.
static bool correlate_lags(const double *values, size_t count, size_t most, int32_t *work,
                           struct rank_correlation lags[INDEPENDENCE_LAGS], bool *independent)
{
    if (count > most) {
        values += (count - most) / 2;
        count = most;
    }
    if (!rank_values(values, count, work))
        return false;
    *independent = true;
    for (size_t lag = 1; lag <= INDEPENDENCE_LAGS; lag++) {
        struct rank_correlation found = rank_autocorrelate(work, count, lag, work + count);
        lags[lag - 1] = found;
        if (fabs(found.rho) > negligible && found.p < significance)
            *independent = false;
    }
    return true;
}

size_t independence_thin(const double *values, size_t count, size_t thinning, double *kept)
{
    size_t taken = 0;
    for (size_t i = 0; i < count; i += thinning)
        kept[taken++] = values[i];
    return taken;
}

size_t independence_evidence(size_t count, double q)
{
    const double least = fmax(EVIDENCE_VALUES, EVIDENCE_BEYOND / (1 - q));
    const double every = floor((double)count / least);
    return every < 3 ? 1 : ((size_t)every - 1) | 1;
}

// A few of the values show a dependence so much greater than what matters that all would, too: then
// ranking all of them tells nothing new.
static bool depends_plainly(const double *values, size_t count, int32_t *work, bool *plainly)
{
    static const double plain = 0.2; // 15 of its standard deviations beyond negligible
    struct rank_correlation lags[INDEPENDENCE_LAGS];
    bool independent, done = true;
    *plainly = false;
    if (count >= 2 * GLANCE_VALUES) {
        done = correlate_lags(values, count, GLANCE_VALUES, work, lags, &independent);
        for (unsigned i = 0; done && i < INDEPENDENCE_LAGS; i++)
            *plainly |= fabs(lags[i].rho) > plain;
    }
    return done;
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
    double *kept = calloc(count, sizeof *kept);
    int32_t *work = calloc(3 * ranked, sizeof *work);
    bool done =
        kept && work &&
        correlate_lags(values, count, MOST_VALUES, work, result->unthinned, &result->independent);
    if (done) {
        result->judged = true;
        for (unsigned i = 0; i < INDEPENDENCE_LAGS; i++)
            result->thinned[i] = result->unthinned[i];
        size_t thinning = 1;
        bool plainly = false;
        while (done && !result->independent &&
               count / (thinning = next_thinning(thinning, turn)) >= least) {
            result->thinning = thinning;
            result->kept = independence_thin(values, count, thinning, kept);
            done = depends_plainly(kept, result->kept, work, &plainly) &&
                   (plainly || correlate_lags(kept, result->kept, MOST_VALUES, work,
                                              result->thinned, &result->independent));
        }
        if (done && plainly) // no other thinning was left: what it shows is told
            done = correlate_lags(kept, result->kept, MOST_VALUES, work, result->thinned,
                                  &result->independent);
    }
    free(kept);
    free(work);
    if (!done)
        return error_set(err, ERROR_FAILED, "out of memory for the ranks of %s samples",
                         TEXT_COUNT(ranked));
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
