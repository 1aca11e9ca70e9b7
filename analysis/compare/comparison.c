// SPDX-License-Identifier: MIT
#include "analysis/compare/comparison.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

// --- in words ------------------------------------------------------------------------------------

enum { NAMED_CAUSES = 3 };

// --- a percentile --------------------------------------------------------------------------------

// "nginx (A) +120 us on 4.1 % of messages", or where the base has it as well "application time (A)
// +9.8 us (100 us -> 110 us on 100 % of messages)".
static void say_cause(const struct cause_shift *cause, char *text, size_t bytes)
{
    char name[100], difference[TEXT_NUMBER_BYTES], before[32], after[32], was[32], is[32];
    int main_side = cause->difference_ns > 0 ? COMPARE_CANDIDATE : COMPARE_BASE;
    int other = main_side == COMPARE_CANDIDATE ? COMPARE_BASE : COMPARE_CANDIDATE;
    cause_shift_name(cause, name, sizeof name);
    if (cause->mean_ns[other] < cause->mean_ns[main_side] / 20 && cause->share[main_side] > 0) {
        double median = cause->spread_ns[main_side].median;
        text_append(text, bytes, "%s %s on %s of messages", name,
                    text_signed_ns(main_side == COMPARE_CANDIDATE ? median : -median, difference),
                    text_share(cause->share[main_side], 1, is));
        return;
    }
    text_append(text, bytes, "%s %s", name, text_signed_ns(cause->difference_ns, difference));
    if (cause->share[COMPARE_BASE] > 0 && cause->share[COMPARE_CANDIDATE] > 0)
        text_append(
            text, bytes, " (median %s -> %s, on %s -> %s of messages)",
            units_format_ns(cause->spread_ns[COMPARE_BASE].median, before, sizeof before),
            units_format_ns(cause->spread_ns[COMPARE_CANDIDATE].median, after, sizeof after),
            text_share(cause->share[COMPARE_BASE], 1, was),
            text_share(cause->share[COMPARE_CANDIDATE], 1, is));
}

// "application time (A) usually +198 us (median ...)".
static void say_usual(const struct cause_shift *cause, char *text, size_t bytes)
{
    char name[100], difference[TEXT_NUMBER_BYTES], before[32], after[32], was[32], is[32];
    text_append(text, bytes, "%s usually %s (median %s -> %s, on %s -> %s of messages)",
                cause_shift_name(cause, name, sizeof name),
                text_signed_ns(cause->median_difference_ns, difference),
                units_format_ns(cause->spread_ns[COMPARE_BASE].median, before, sizeof before),
                units_format_ns(cause->spread_ns[COMPARE_CANDIDATE].median, after, sizeof after),
                text_share(cause->share[COMPARE_BASE], 1, was),
                text_share(cause->share[COMPARE_CANDIDATE], 1, is));
}

// The causes that surely moved in the same direction as the percentile.
static void say_causes(const struct slice_shift *around, bool up, char *text, size_t bytes)
{
    struct named_shift named[NAMED_CAUSES];
    if (!around->available) {
        text_append(text, bytes, "; why is not known: %s", around->reason);
        return;
    }
    size_t count = slice_shift_named(around, up, named, NAMED_CAUSES);
    for (size_t i = 0; i < count; i++) {
        text_append(text, bytes, "%s", i ? "; " : ": ");
        (named[i].by_median ? say_usual : say_cause)(named[i].cause, text, bytes);
    }
    if (count == 0)
        text_append(text, bytes, "; no cause changed by more than the runs' own scatter");
}

// A percentile's shift and its causes, from the messages around it.
static void percentile_shift_words(const char *name, const struct percentile_shift *shift,
                                   const struct slice_shift *around, char text[SHIFT_WORDS_BYTES])
{
    size_t bytes = SHIFT_WORDS_BYTES;
    snprintf(text, bytes, "%s ", name);
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
            say_causes(around, shift->shift > 0, text, bytes);
        else
            text_append(text, bytes, ": no difference that these runs can show");
    }
}

// --- a slice -------------------------------------------------------------------------------------

static void say_changes(const struct slice_shift *slice, char *text, size_t bytes)
{
    char name[100], time[TEXT_NUMBER_BYTES], was[32], is[32];
    size_t named = 0, changed = 0;
    for (size_t i = 0; i < slice->causes.count; i++) {
        const struct cause_shift *cause = &slice->causes.items[i];
        if (cause->kind == CHANGE_NONE || ++changed > NAMED_CAUSES)
            continue;
        text_append(text, bytes, "%s%s %s: %s a message, on %s of them (%s)", named++ ? "; " : " ",
                    cause_shift_name(cause, name, sizeof name), change_kind_name(cause->kind),
                    text_signed_ns(cause->difference_ns, time),
                    text_share(cause->longer[COMPARE_CANDIDATE], 1, is),
                    text_share(cause->longer[COMPARE_BASE], 1, was));
    }
    if (changed == 0 && isinf(slice->latency.interval.low) && slice->causes.count)
        text_append(text, bytes, " The largest difference is %s, %s a message",
                    cause_shift_name(&slice->causes.items[0], name, sizeof name),
                    text_signed_ns(slice->causes.items[0].difference_ns, time));
    else if (changed == 0)
        text_append(text, bytes, " No cause changed by more than the runs' own scatter");
    else if (changed > NAMED_CAUSES)
        text_append(text, bytes, "; and %s smaller change%s", TEXT_COUNT(changed - NAMED_CAUSES),
                    changed - NAMED_CAUSES == 1 ? "" : "s");
    text_append(text, bytes, ".");
}

// A slice's shift: its mean latency, and the causes that changed most.
static void slice_shift_words(const struct slice_shift *slice, double confidence,
                              char text[SHIFT_WORDS_BYTES])
{
    char base[32], candidate[32], change[TEXT_NUMBER_BYTES], low[TEXT_NUMBER_BYTES],
        high[TEXT_NUMBER_BYTES];
    const struct cause_shift *latency = &slice->latency;
    size_t bytes = SHIFT_WORDS_BYTES;
    text[0] = '\0';
    if (!slice->available) {
        text_append(text, bytes, "N/A: %s", slice->reason);
        return;
    }
    text_append(text, bytes, "%s took %s on average, %s before (%s %%)", slice->words,
                units_format_ns(latency->mean_ns[COMPARE_CANDIDATE], candidate, sizeof candidate),
                units_format_ns(latency->mean_ns[COMPARE_BASE], base, sizeof base),
                text_percent(latency->difference_ns / latency->mean_ns[COMPARE_BASE], change));
    if (isinf(latency->interval.low))
        text_append(text, bytes, "; too few messages to say how sure that is.");
    else
        text_append(text, bytes, "; the difference lies between %s and %s (%.0f %%).",
                    text_signed_ns(latency->interval.low, low),
                    text_signed_ns(latency->interval.high, high), 100 * confidence);
    say_changes(slice, text, bytes);
}

// --- the slices -----------------------------------------------------------------------------

// The messages around a percentile: on either side half as many as lie beyond it, and at most a
// twentieth of all.
static struct diagnosis_slice band_around(double quantile)
{
    double half = fmin(0.05, fmin(quantile, 1 - quantile) / 2);
    return (struct diagnosis_slice){.low = quantile - half, .high = quantile + half};
}

// Adds a slice unless it is there already; *index is its place.
static int add_slice(struct comparison *comparison, const struct diagnosis_slice *slice,
                     size_t *index, struct error *err)
{
    int64_t at = diagnosis_slice_add(&comparison->slices, slice);
    *index = (size_t)at;
    return at < 0 ? error_set(err, ERROR_FAILED, "out of memory for slices") : 0;
}

static int add_percentile(struct comparison *comparison, const char *name, double quantile,
                          struct error *err)
{
    struct compared_percentile percentile = {.shift = {.quantile = quantile}};
    const struct diagnosis_slice band = band_around(quantile);
    for (size_t i = 0; i < comparison->percentiles.count; i++)
        if (fabs(comparison->percentiles.items[i].shift.quantile - quantile) < 1e-9)
            return 0;
    snprintf(percentile.name, sizeof percentile.name, "%s", name);
    int result = add_slice(comparison, &band, &percentile.around, err);
    if (result == 0 && array_push(&comparison->percentiles, percentile) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for percentiles");
    return result;
}

static int add_asked(struct comparison *comparison, const struct comparison_request *request,
                     struct error *err)
{
    static const char *const usual[] = {"p99-100", "p45-55"};
    size_t index;
    int result = 0;
    for (size_t i = 0; request->slices && i < request->slices->count && result == 0; i++)
        result = add_slice(comparison, &request->slices->items[i], &index, err);
    bool nothing = request->base && comparison->slices.count == 0;
    for (size_t i = 0; i < 2 && nothing && result == 0; i++) {
        struct diagnosis_slice slice;
        result = diagnosis_slice_parse(usual[i], &slice, err);
        if (result == 0)
            result = add_slice(comparison, &slice, &index, err);
    }
    comparison->asked = comparison->slices.count;
    return result;
}

// Chooses what is compared. The runs' folders are read only for the slice of the gates, when it is
// not given.
static int comparison_plan(struct comparison *comparison, const struct comparison_request *request,
                           struct error *err)
{
    struct diagnosis_slice own;
    *comparison = (struct comparison){.has_base = request->base};
    int result = add_asked(comparison, request, err);
    if (result == 0 && !request->gate_slice)
        result = run_set_own_slice(request->candidate, &own, err);
    if (result == 0)
        result = add_slice(comparison, request->gate_slice ? request->gate_slice : &own,
                           &comparison->gate_slice, err);
    for (int q = 0; q < LATENCY_QUANTILES && latency_quantiles[q] <= 0.999 && result == 0; q++)
        result = add_percentile(comparison, latency_quantile_names[q], latency_quantiles[q], err);
    for (size_t i = 0; request->gates && i < request->gates->count && result == 0; i++) {
        const struct gate *gate = &request->gates->items[i];
        if (gate->quantile > 0)
            result = add_percentile(comparison, gate->name, gate->quantile, err);
    }
    return result;
}

// --- comparing -----------------------------------------------------------------------------------

static int first_side(const struct comparison *comparison)
{
    return comparison->has_base ? COMPARE_BASE : COMPARE_CANDIDATE;
}

static void comparison_warn(struct comparison *comparison)
{
    size_t bytes = sizeof comparison->warning;
    for (int side = first_side(comparison); side < COMPARE_SIDES; side++) {
        const struct run_set *set = comparison->sides[side];
        if (set->inconclusive)
            text_append(comparison->warning, bytes,
                        "%sthe %s's load cannot be trusted in %s of %s run%s: %s",
                        comparison->warning[0] ? "; " : "Inconclusive: ",
                        side == COMPARE_BASE ? "base" : "candidate", TEXT_COUNT(set->inconclusive),
                        TEXT_COUNT(set->latencies.count), set->latencies.count == 1 ? "" : "s",
                        set->reason);
    }
    for (int side = first_side(comparison); side < COMPARE_SIDES; side++) {
        const struct run_set *set = comparison->sides[side];
        if (set->latencies.count < set->asked)
            text_append(comparison->warning, bytes,
                        "%sthe %s has only %s of the %s repetitions that its experiment asks for",
                        comparison->warning[0] ? "; " : "",
                        side == COMPARE_BASE ? "base" : "candidate",
                        TEXT_COUNT(set->latencies.count), TEXT_COUNT(set->asked));
    }
    if (!comparison->has_base)
        return;
    double base = comparison->sides[COMPARE_BASE]->offered_rate,
           candidate = comparison->sides[COMPARE_CANDIDATE]->offered_rate;
    char rates[COMPARE_SIDES][TEXT_NUMBER_BYTES];
    if (fabs(candidate / base - 1) > 0.02)
        text_append(comparison->warning, bytes, "%sthe loads differ: %s and %s requests/s",
                    comparison->warning[0] ? "; " : "", text_rate(base, rates[COMPARE_BASE]),
                    text_rate(candidate, rates[COMPARE_CANDIDATE]));
}

static int compare_slice(struct comparison *comparison, size_t slice, struct error *err)
{
    struct slice_profile_list lists[COMPARE_SIDES] = {{0}, {0}};
    struct compared_slice found = {.verdict = ""};
    int result = 0;
    for (int side = first_side(comparison); side < COMPARE_SIDES; side++)
        for (size_t r = 0; r < comparison->sides[side]->profiles.count && result == 0; r++)
            if (array_push(&lists[side], comparison_profile(comparison, side, r, slice)) < 0)
                result = error_set(err, ERROR_FAILED, "out of memory for profiles");
    if (result == 0)
        result = slice_shift(lists, COMPARE_CONFIDENCE, &found.shift, err);
    if (result == 0 && comparison->has_base)
        slice_shift_words(&found.shift, COMPARE_CONFIDENCE, found.verdict);
    if (result == 0 && array_push(&comparison->shifts, found) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for slices");
    if (result < 0)
        slice_shift_free(&found.shift);
    for (int side = 0; side < COMPARE_SIDES; side++)
        array_free(&lists[side]);
    return result;
}

static void compare_percentile(struct comparison *comparison, struct compared_percentile *out)
{
    const struct latency_set *const sides[COMPARE_SIDES] = {
        comparison->latencies[COMPARE_BASE], comparison->latencies[COMPARE_CANDIDATE]};
    double quantile = out->shift.quantile;
    if (!comparison->has_base) {
        percentile_of(sides[COMPARE_CANDIDATE], quantile, COMPARE_CONFIDENCE, &out->shift);
        return;
    }
    percentile_shift(sides, quantile, COMPARE_CONFIDENCE, &out->shift);
    percentile_shift_words(out->name, &out->shift, &comparison->shifts.items[out->around].shift,
                           out->verdict);
}

int comparison_finish(struct comparison *comparison, struct error *err)
{
    int result = 0;
    for (int side = first_side(comparison); side < COMPARE_SIDES && result == 0; side++)
        result = latency_set_make(&comparison->sides[side]->latencies, &comparison->latencies[side],
                                  err);
    for (size_t i = 0; i < comparison->slices.count && result == 0; i++)
        result = compare_slice(comparison, i, err);
    for (size_t i = 0; i < comparison->percentiles.count && result == 0; i++)
        compare_percentile(comparison, &comparison->percentiles.items[i]);
    comparison_warn(comparison);
    return result;
}

int comparison_want(const struct comparison_request *request, struct run_set *base,
                    struct run_set *candidate, struct error *err)
{
    struct comparison plan;
    int result = comparison_plan(&plan, request, err);
    if (result == 0 && base)
        result = run_set_want(base, &plan.slices, err);
    if (result == 0)
        result = run_set_want(candidate, &plan.slices, err);
    comparison_free(&plan);
    return result;
}

int comparison_of_sets(struct comparison *comparison, const struct comparison_request *request,
                       const struct run_set *base, const struct run_set *candidate,
                       struct error *err)
{
    int result = comparison_plan(comparison, request, err);
    comparison->sides[COMPARE_BASE] = base;
    comparison->sides[COMPARE_CANDIDATE] = candidate;
    return result < 0 ? result : comparison_finish(comparison, err);
}

const struct slice_profile *comparison_profile(const struct comparison *comparison, int side,
                                               size_t run, size_t slice)
{
    return run_set_profile(comparison->sides[side], run, &comparison->slices.items[slice]);
}

static bool is_same_folder(const char *a, const char *b)
{
    char left[PATH_MAX], right[PATH_MAX];
    return realpath(a, left) && realpath(b, right) && strcmp(left, right) == 0;
}

int comparison_make(struct comparison *comparison, const struct comparison_request *request,
                    struct progress *progress, struct error *err)
{
    const char *const paths[COMPARE_SIDES] = {request->base, request->candidate};
    int result = comparison_plan(comparison, request, err);
    for (int side = first_side(comparison); side < COMPARE_SIDES && result == 0; side++) {
        struct run_set *set = &comparison->read[side];
        comparison->sides[side] = set;
        snprintf(set->load, sizeof set->load, "%s",
                 request->loads[side] ? request->loads[side] : "");
        if (side && request->base && is_same_folder(request->base, request->candidate)) {
            comparison->sides[side] = comparison->sides[COMPARE_BASE];
            break;
        }
        result = run_set_want(set, &comparison->slices, err);
        if (result == 0)
            result = run_set_read(set, paths[side], request->categories, progress, err);
    }
    progress_phase(progress, "comparing");
    if (result == 0)
        result = comparison_finish(comparison, err);
    progress_end(progress);
    return result;
}

bool comparison_is_single(const struct comparison *comparison)
{
    return comparison->has_base && comparison->sides[COMPARE_BASE]->profiles.count == 1 &&
           comparison->sides[COMPARE_CANDIDATE]->profiles.count == 1;
}

bool comparison_is_doubtful(const struct comparison *comparison)
{
    bool doubtful = false;
    for (int side = first_side(comparison); side < COMPARE_SIDES; side++)
        doubtful |= comparison->sides[side]->inconclusive > 0;
    return doubtful;
}

bool comparison_any_known(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->asked; i++)
        if (comparison->shifts.items[i].shift.available)
            return true;
    for (size_t i = 0; i < comparison->percentiles.count && !comparison_is_single(comparison); i++)
        if (comparison->percentiles.items[i].shift.known)
            return true;
    return false;
}

void comparison_free(struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->shifts.count; i++)
        slice_shift_free(&comparison->shifts.items[i].shift);
    array_free(&comparison->shifts);
    array_free(&comparison->percentiles);
    array_free(&comparison->slices);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        latency_set_free(comparison->latencies[side]);
        run_set_free(&comparison->read[side]);
    }
}
