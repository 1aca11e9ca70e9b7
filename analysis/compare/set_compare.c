// SPDX-License-Identifier: MIT
#include "analysis/compare/set_compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

enum { NAMED_CAUSES = 3 };

// --- what to look at -----------------------------------------------------------------------------

// The messages around a percentile: as many on either side as half of those beyond it, and no more
// than a twentieth of all.
static struct diagnosis_slice band_around(double quantile)
{
    double half = fmin(0.05, fmin(quantile, 1 - quantile) / 2);
    return (struct diagnosis_slice){.low = quantile - half, .high = quantile + half};
}

static int add_percentile(struct set_comparison *comparison, const char *name, double quantile,
                          struct error *err)
{
    struct set_percentile percentile = {.shift = {.quantile = quantile}};
    for (size_t i = 0; i < comparison->percentiles.count; i++)
        if (fabs(comparison->percentiles.items[i].shift.quantile - quantile) < 1e-9)
            return 0;
    snprintf(percentile.name, sizeof percentile.name, "%s", name);
    if (array_push(&comparison->percentiles, percentile) < 0 ||
        array_push(&comparison->slices, band_around(quantile)) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for percentiles");
    return 0;
}

int set_comparison_init(struct set_comparison *comparison, const struct gate_array *gates,
                        const struct diagnosis_slice *slice, struct error *err)
{
    int result = 0;
    *comparison = (struct set_comparison){.has_base = false};
    if (array_push(&comparison->slices, *slice) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for slices");
    diagnosis_slice_words(slice, comparison->slice_words, sizeof comparison->slice_words);
    for (int q = 0; q < LATENCY_QUANTILES && latency_quantiles[q] <= 0.999 && result == 0; q++)
        result = add_percentile(comparison, latency_quantile_names[q], latency_quantiles[q], err);
    for (size_t i = 0; i < gates->count && result == 0; i++)
        if (gates->items[i].subject == GATE_PERCENTILE)
            result =
                add_percentile(comparison, gates->items[i].name, gates->items[i].quantile, err);
    return result;
}

// --- in words ------------------------------------------------------------------------------------

// "nginx (A) +120 us on 4.1 % of messages", or where the base has it as well "application time (A)
// +9.8 us (100 us -> 110 us on 100 % of messages)".
static void say_cause(const struct cause_shift *cause, char *text, size_t bytes)
{
    char name[100], difference[TEXT_NUMBER_BYTES], before[32], after[32];
    int main_side = cause->difference_ns > 0 ? COMPARE_CANDIDATE : COMPARE_BASE;
    int other = main_side == COMPARE_CANDIDATE ? COMPARE_BASE : COMPARE_CANDIDATE;
    cause_shift_name(cause, name, sizeof name);
    if (cause->mean_ns[other] < cause->mean_ns[main_side] / 20 && cause->share[main_side] > 0) {
        double median = cause->median_ns[main_side];
        text_append(text, bytes, "%s %s on %.3g %% of messages", name,
                    text_signed_ns(main_side == COMPARE_CANDIDATE ? median : -median, difference),
                    100 * cause->share[main_side]);
        return;
    }
    text_append(text, bytes, "%s %s", name, text_signed_ns(cause->difference_ns, difference));
    if (cause->share[COMPARE_BASE] > 0 && cause->share[COMPARE_CANDIDATE] > 0)
        text_append(text, bytes, " (median %s -> %s, on %.3g %% -> %.3g %% of messages)",
                    units_format_ns(cause->median_ns[COMPARE_BASE], before, sizeof before),
                    units_format_ns(cause->median_ns[COMPARE_CANDIDATE], after, sizeof after),
                    100 * cause->share[COMPARE_BASE], 100 * cause->share[COMPARE_CANDIDATE]);
}

// "application time (A) usually +198 us (median ...)".
static void say_usual(const struct cause_shift *cause, char *text, size_t bytes)
{
    char name[100], difference[TEXT_NUMBER_BYTES], before[32], after[32];
    text_append(text, bytes, "%s usually %s (median %s -> %s, on %.3g %% -> %.3g %% of messages)",
                cause_shift_name(cause, name, sizeof name),
                text_signed_ns(cause->median_difference_ns, difference),
                units_format_ns(cause->median_ns[COMPARE_BASE], before, sizeof before),
                units_format_ns(cause->median_ns[COMPARE_CANDIDATE], after, sizeof after),
                100 * cause->share[COMPARE_BASE], 100 * cause->share[COMPARE_CANDIDATE]);
}

// The causes that surely moved the way the percentile did.
static void say_causes(const struct set_percentile *percentile, char *text, size_t bytes)
{
    const struct slice_shift *around = &percentile->around;
    struct named_cause named[NAMED_CAUSES];
    if (!around->available) {
        text_append(text, bytes, "; why is not known: %s", around->reason);
        return;
    }
    size_t count = slice_shift_named(around, percentile->shift.shift > 0, named, NAMED_CAUSES);
    for (size_t i = 0; i < count; i++) {
        text_append(text, bytes, "%s", i ? "; " : ": ");
        (named[i].by_median ? say_usual : say_cause)(named[i].cause, text, bytes);
    }
    if (count == 0)
        text_append(text, bytes, "; no cause changed by more than the runs' own scatter");
}

static void say_percentile(struct set_percentile *percentile)
{
    const struct percentile_shift *shift = &percentile->shift;
    char *text = percentile->verdict;
    size_t bytes = sizeof percentile->verdict;
    text_append(text, bytes, "%s ", percentile->name);
    if (!shift->known && shift->never[COMPARE_CANDIDATE] && isfinite(shift->ns[COMPARE_BASE]))
        text_append(text, bytes,
                    "never: unanswered requests reach it in every run of the candidate");
    else if (!shift->known &&
             (isinf(shift->ns[COMPARE_BASE]) || isinf(shift->ns[COMPARE_CANDIDATE])))
        text_append(text, bytes, "N/A: unanswered requests reach it");
    else if (!shift->known)
        text_append(text, bytes,
                    "N/A: too few requests lie beyond it, or in some resamples it is reached "
                    "by unanswered ones");
    else {
        char change[TEXT_NUMBER_BYTES], low[TEXT_NUMBER_BYTES], high[TEXT_NUMBER_BYTES];
        text_append(text, bytes, "%s %% [%s, %s]", text_percent(shift->shift, change),
                    text_percent(shift->interval.low, low),
                    text_percent(shift->interval.high, high));
        if (shift->interval.low > 0 || shift->interval.high < 0)
            say_causes(percentile, text, bytes);
        else
            text_append(text, bytes, ": no difference that these runs can show");
    }
}

static void warn(struct set_comparison *comparison)
{
    size_t bytes = sizeof comparison->warning;
    for (int side = COMPARE_BASE; side < COMPARE_SIDES; side++) {
        const struct run_set *set = &comparison->sides[side];
        if (set->inconclusive)
            text_append(comparison->warning, bytes, "%s%s: the load was n/a in %zu of %zu runs: %s",
                        comparison->warning[0] ? "; " : "",
                        side == COMPARE_BASE ? "base" : "candidate", set->inconclusive,
                        set->latencies.count, set->reason);
    }
    double base = comparison->sides[COMPARE_BASE].offered_rate,
           candidate = comparison->sides[COMPARE_CANDIDATE].offered_rate;
    if (comparison->has_base && fabs(candidate / base - 1) > 0.02)
        text_append(comparison->warning, bytes, "%sthe loads differ: %.6g and %.6g requests/s",
                    comparison->warning[0] ? "; " : "", base, candidate);
}

// --- comparing -----------------------------------------------------------------------------------

static int compare_slice(const struct set_comparison *comparison, size_t slice,
                         struct slice_shift *out, struct error *err)
{
    struct slice_profile_list lists[COMPARE_SIDES] = {{0}, {0}};
    int result = 0;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        const struct run_profile_array *profiles = &comparison->sides[side].profiles;
        for (size_t r = 0; r < profiles->count && result == 0; r++)
            if (array_push(&lists[side], &profiles->items[r].slices.items[slice]) < 0)
                result = error_set(err, ERROR_FAILED, "out of memory for profiles");
    }
    if (result == 0)
        result = slice_shift(lists, SET_CONFIDENCE, out, err);
    for (int side = 0; side < COMPARE_SIDES; side++)
        array_free(&lists[side]);
    return result;
}

static int compare_percentiles(struct set_comparison *comparison,
                               struct latency_set *const sets[COMPARE_SIDES], struct error *err)
{
    const struct latency_set *const sides[COMPARE_SIDES] = {sets[COMPARE_BASE],
                                                            sets[COMPARE_CANDIDATE]};
    int result = 0;
    for (size_t i = 0; i < comparison->percentiles.count && result == 0; i++) {
        struct set_percentile *percentile = &comparison->percentiles.items[i];
        double quantile = percentile->shift.quantile;
        result = comparison->has_base
                     ? percentile_shift(sides, quantile, SET_CONFIDENCE, &percentile->shift, err)
                     : percentile_of(sides[COMPARE_CANDIDATE], quantile, SET_CONFIDENCE,
                                     &percentile->shift, err);
        if (result == 0)
            result = compare_slice(comparison, i + 1, &percentile->around, err);
        if (result == 0 && comparison->has_base)
            say_percentile(percentile);
    }
    return result;
}

int set_compare(struct set_comparison *comparison, const char *base, const char *candidate,
                struct progress *progress, struct error *err)
{
    const char *const paths[COMPARE_SIDES] = {base, candidate};
    struct latency_set *sets[COMPARE_SIDES] = {NULL, NULL};
    int result = 0;
    comparison->has_base = base;
    for (int side = base ? COMPARE_BASE : COMPARE_CANDIDATE; side < COMPARE_SIDES && result == 0;
         side++) {
        struct run_set *set = &comparison->sides[side];
        result = run_set_read(paths[side], &comparison->slices, progress, set, err);
        if (result == 0)
            result = latency_set_make(&set->latencies, &sets[side], err);
    }
    progress_phase(progress, "comparing");
    if (result == 0)
        result = compare_percentiles(comparison, sets, err);
    if (result == 0)
        result = compare_slice(comparison, 0, &comparison->slice, err);
    if (result == 0)
        warn(comparison);
    progress_end(progress);
    for (int side = 0; side < COMPARE_SIDES; side++)
        latency_set_free(sets[side]);
    return result;
}

void set_comparison_free(struct set_comparison *comparison)
{
    for (size_t i = 0; i < comparison->percentiles.count; i++)
        slice_shift_free(&comparison->percentiles.items[i].around);
    slice_shift_free(&comparison->slice);
    array_free(&comparison->percentiles);
    array_free(&comparison->slices);
    for (int side = 0; side < COMPARE_SIDES; side++)
        run_set_free(&comparison->sides[side]);
}
