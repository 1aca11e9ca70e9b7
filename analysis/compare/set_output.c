// SPDX-License-Identifier: MIT
//
// The comparison of two sets of runs on the terminal and for scripts (docs/compare-json.md).
#include <math.h>
#include <string.h>

#include "analysis/compare/set_compare.h"
#include "analysis/lifetime/lifetime.h"
#include "base/json_numbers.h"
#include "base/text.h"
#include "base/units.h"

static const char *const side_names[COMPARE_SIDES] = {"base", "candidate"};

// A cause may be named after a thread, which may call itself anything.
static json_t *words(const char *text)
{
    char clean[1400];
    return json_string(text_clean(text, false, clean, sizeof clean));
}

// --- on the terminal -----------------------------------------------------------------------------

static const char *duration(double ns, char out[32])
{
    return isnan(ns) ? "-" : isinf(ns) ? "never" : units_format_ns(ns, out, 32);
}

static void write_percentiles(const struct set_comparison *comparison, FILE *out)
{
    char base[32], candidate[32];
    fprintf(out, "\n  %-8s %10s %10s %10s  99 %%\n", "", "base", "candidate", "change");
    for (size_t i = 0; i < comparison->percentiles.count; i++) {
        const struct set_percentile *percentile = &comparison->percentiles.items[i];
        const struct percentile_shift *shift = &percentile->shift;
        fprintf(out, "  %-8s %10s %10s", percentile->name, duration(shift->ns[COMPARE_BASE], base),
                duration(shift->ns[COMPARE_CANDIDATE], candidate));
        if (shift->known)
            fprintf(out, " %+8.1f %%  [%+.1f, %+.1f]", 100 * shift->shift,
                    100 * shift->interval.low, 100 * shift->interval.high);
        fputc('\n', out);
    }
    fputc('\n', out);
}

void set_comparison_text(const struct set_comparison *comparison, FILE *out)
{
    char clean[800];
    size_t runs[COMPARE_SIDES];
    for (int side = 0; side < COMPARE_SIDES; side++)
        runs[side] = comparison->sides[side].latencies.count;
    fprintf(out, "%s (%zu run%s) against %s (%zu run%s)\n",
            comparison->sides[COMPARE_CANDIDATE].path, runs[COMPARE_CANDIDATE],
            runs[COMPARE_CANDIDATE] == 1 ? "" : "s", comparison->sides[COMPARE_BASE].path,
            runs[COMPARE_BASE], runs[COMPARE_BASE] == 1 ? "" : "s");
    write_percentiles(comparison, out);
    for (size_t i = 0; i < comparison->percentiles.count; i++)
        fprintf(out, "%s\n",
                text_clean(comparison->percentiles.items[i].verdict, false, clean, sizeof clean));
    if (comparison->warning[0])
        fprintf(out, "Beware: %s\n", text_clean(comparison->warning, false, clean, sizeof clean));
    if (runs[COMPARE_BASE] < 2 || runs[COMPARE_CANDIDATE] < 2)
        fputs("One run a side does not tell how runs differ by themselves; the intervals lack it. "
              "Repeat both.\n",
              out);
}

// --- for scripts ---------------------------------------------------------------------------------

static json_t *interval_json(const struct resample_interval *interval, double unit)
{
    return json_pack("[o, o]", json_number_or_null(interval->low / unit),
                     json_number_or_null(interval->high / unit));
}

static json_t *cause_json(const struct cause_shift *cause, bool has_base)
{
    json_t *object = json_pack("{s:o, s:s, s:b}", "cause", words(cause->name), "role",
                               role_name(cause->role), "explains", cause->explains);
    for (int side = has_base ? COMPARE_BASE : COMPARE_CANDIDATE; side < COMPARE_SIDES; side++)
        json_object_set_new(object, side_names[side],
                            json_pack("{s:o, s:o, s:o}", "mean_us",
                                      json_number_or_null(cause->mean_ns[side] / 1000), "share",
                                      json_number_or_null(cause->share[side]), "median_us",
                                      json_number_or_null(cause->median_ns[side] / 1000)));
    if (has_base) {
        json_object_set_new(object, "difference_us",
                            json_number_or_null(cause->difference_ns / 1000));
        json_object_set_new(object, "difference_ci_us", interval_json(&cause->interval, 1000));
        json_object_set_new(object, "median_difference_us",
                            json_number_or_null(cause->median_difference_ns / 1000));
        json_object_set_new(object, "median_difference_ci_us",
                            interval_json(&cause->median_interval, 1000));
    }
    return object;
}

static json_t *slice_json(const struct slice_shift *slice, bool has_base)
{
    json_t *causes = json_array();
    for (size_t i = 0; i < slice->causes.count; i++)
        json_array_append_new(causes, cause_json(&slice->causes.items[i], has_base));
    json_t *object = json_pack("{s:b, s:s, s:o}", "available", slice->available, "reason",
                               slice->available ? "" : slice->reason, "causes", causes);
    for (int side = has_base ? COMPARE_BASE : COMPARE_CANDIDATE; side < COMPARE_SIDES; side++)
        json_object_set_new(object, side_names[side],
                            json_pack("{s:I, s:I, s:o}", "runs", (json_int_t)slice->runs[side],
                                      "messages", (json_int_t)slice->messages[side], "mean_us",
                                      json_number_or_null(slice->mean_ns[side] / 1000)));
    return object;
}

static json_t *percentile_json(const struct set_percentile *percentile)
{
    const struct percentile_shift *shift = &percentile->shift;
    return json_pack("{s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "percentile", percentile->name,
                     "verdict", words(percentile->verdict), "known", shift->known, "base_us",
                     json_number_or_null(shift->ns[COMPARE_BASE] / 1000), "candidate_us",
                     json_number_or_null(shift->ns[COMPARE_CANDIDATE] / 1000), "change",
                     json_number_or_null(shift->shift), "change_ci",
                     shift->known ? interval_json(&shift->interval, 1) : json_null(), "around",
                     slice_json(&percentile->around, true));
}

json_t *set_comparison_json(const struct set_comparison *comparison)
{
    json_t *percentiles = json_array();
    for (size_t i = 0; i < comparison->percentiles.count; i++)
        json_array_append_new(percentiles, percentile_json(&comparison->percentiles.items[i]));
    json_t *document = json_pack(
        "{s:s, s:f, s:i, s:i, s:i, s:s, s:o, s:s, s:o}", "taillight_version", TAILLIGHT_VERSION,
        "confidence", SET_CONFIDENCE, "blocks", RESAMPLE_BLOCKS, "resamples", RESAMPLES, "seed",
        RESAMPLE_SEED, "warning", comparison->warning, "percentiles", percentiles, "slice",
        comparison->slice_words, "causes", slice_json(&comparison->slice, true));
    for (int side = 0; side < COMPARE_SIDES; side++) {
        const struct run_set *set = &comparison->sides[side];
        json_object_set_new(document, side_names[side],
                            json_pack("{s:s, s:s, s:I, s:o, s:I}", "path", set->path, "name",
                                      set->name, "runs", (json_int_t)set->latencies.count,
                                      "offered_rate", json_number_or_null(set->offered_rate),
                                      "inconclusive_loads", (json_int_t)set->inconclusive));
    }
    return document;
}
