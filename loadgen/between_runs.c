// SPDX-License-Identifier: MIT
#include "loadgen/between_runs.h"

#include <math.h>
#include <gsl/gsl_cdf.h>

static bool counts(const struct repetition *one)
{
    return one->interval.known && isfinite(one->value) && isfinite(one->interval.low) &&
           isfinite(one->interval.high);
}

void between_runs_judge(const struct repetition *repetitions, size_t count, double confidence,
                        struct between_runs *result)
{
    double sum = 0, squares = 0, within = 0;
    // An interval of this confidence is so many standard errors wide.
    double widths = 2 * gsl_cdf_ugaussian_Pinv((1 + confidence) / 2);
    *result = (struct between_runs){
        .low = NAN, .high = NAN, .spread = NAN, .within = NAN, .between = NAN, .p = NAN};
    for (size_t i = 0; i < count; i++) {
        const struct repetition *one = &repetitions[i];
        if (!counts(one))
            continue;
        double error = (one->interval.high - one->interval.low) / widths;
        result->low = fmin(result->low, one->value); // of a NaN and a number: the number
        result->high = fmax(result->high, one->value);
        result->count++;
        sum += one->value;
        within += error * error;
    }
    if (result->count == 0)
        return;
    double n = (double)result->count, mean = sum / n;
    for (size_t i = 0; i < count; i++)
        if (counts(&repetitions[i]))
            squares += (repetitions[i].value - mean) * (repetitions[i].value - mean);
    within /= n;
    result->spread = result->high - result->low;
    result->within = sqrt(within);
    if (result->count < 2)
        return;
    result->judged = true;
    result->between = sqrt(fmax(squares / (n - 1) - within, 0));
    result->statistic = squares > 0 ? squares / within : 0; // infinite where nothing varies within
    result->p = isinf(result->statistic) ? 0 : gsl_cdf_chisq_Q(result->statistic, n - 1);
    result->exceeds = result->p < 1 - confidence;
}
