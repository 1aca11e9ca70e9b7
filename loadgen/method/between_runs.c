// SPDX-License-Identifier: MIT
#include "loadgen/method/between_runs.h"

#include <math.h>
#include <gsl/gsl_cdf.h>

#include "base/json_numbers.h"
#include "base/text.h"

static bool repetition_counts(const struct repetition *one)
{
    return one->interval.known && isfinite(one->value) && isfinite(one->interval.low) &&
           isfinite(one->interval.high);
}

void between_runs_judge(const struct repetition *repetitions, size_t count, double confidence,
                        struct between_runs *result)
{
    double sum = 0, squares = 0, within = 0;
    // An interval of this confidence is this many standard errors wide.
    double widths = 2 * gsl_cdf_ugaussian_Pinv((1 + confidence) / 2);
    *result = (struct between_runs){
        .low = NAN, .high = NAN, .spread = NAN, .within = NAN, .between = NAN, .p = NAN};
    for (size_t i = 0; i < count; i++) {
        const struct repetition *one = &repetitions[i];
        if (!repetition_counts(one))
            continue;
        double error = (one->interval.high - one->interval.low) / widths;
        result->low = fmin(result->low, one->value); // of a NaN and a number it returns the number
        result->high = fmax(result->high, one->value);
        result->count++;
        sum += one->value;
        within += error * error;
    }
    if (result->count == 0)
        return;
    double n = (double)result->count, mean = sum / n;
    for (size_t i = 0; i < count; i++)
        if (repetition_counts(&repetitions[i]))
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

// --- telling it ----------------------------------------------------------------------------------

json_t *between_runs_json(const struct between_runs *found, const char *percentile)
{
    json_t *json =
        json_pack("{s:s,s:I}", "percentile", percentile, "counted", (json_int_t)found->count);
    json_object_set_new(json, "range_us", json_number_pair(found->low, found->high));
    json_object_set_new(json, "spread_us", json_number_or_null(found->spread));
    json_object_set_new(json, "within_us", json_number_or_null(found->within));
    json_object_set_new(json, "between_us", json_number_or_null(found->between));
    json_object_set_new(json, "chi_squared",
                        found->judged ? json_number_or_null(found->statistic) : json_null());
    json_object_set_new(json, "p", json_number_or_null(found->p));
    json_object_set_new(json, "exceeds_within",
                        found->judged ? json_boolean(found->exceeds) : json_null());
    return json;
}

void between_runs_print(const struct between_runs *found, const struct repetition *repetitions,
                        size_t count, const char *percentile, FILE *out)
{
    fprintf(out, "  %s of each", percentile);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s %s", i ? "," : "   ", TEXT_US(repetitions[i].value));
        if (repetitions[i].interval.known)
            fprintf(out, " [%s, %s]", TEXT_US(repetitions[i].interval.low),
                    TEXT_US(repetitions[i].interval.high));
    }
    fputc('\n', out);
    if (!found->judged)
        fprintf(out, "  between    too few repetitions have a known %s to compare them\n",
                percentile);
    else
        fprintf(out,
                "  between    %s to %s: %s what chance within the repetitions explains "
                "(chi-squared %.3g, p = %.2g; %s of standard deviation between, %s within)\n",
                TEXT_US(found->low), TEXT_US(found->high),
                found->exceeds ? "more than" : "no more than", found->statistic, found->p,
                TEXT_US(found->between), TEXT_US(found->within));
}
