// SPDX-License-Identifier: MIT
#include "analysis/compare/comparison_json.h"

#include <math.h>
#include <string.h>

#include "analysis/run/result_fields.h"
#include "base/json_numbers.h"
#include "base/quantile.h"
#include "base/text.h"

static const char *const side_names[COMPARE_SIDES] = {"base", "candidate"};

// A cause may be named after a thread, whose name may contain any bytes.
static json_t *json_clean_text(const char *text)
{
    char clean[1400];
    return json_string(text_clean(text, false, clean, sizeof clean));
}

static json_t *json_micros(double ns)
{
    return json_number_or_null(ns / 1000);
}

static json_t *interval_json(const struct resample_interval *interval, double unit)
{
    return json_number_pair(interval->low / unit, interval->high / unit);
}

// --- slices --------------------------------------------------------------------------------------

static json_t *change_json(const struct cause_shift *cause)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "change", change_kind_name(cause->kind),
                     "base_us", json_micros(cause->mean_ns[COMPARE_BASE]), "candidate_us",
                     json_micros(cause->mean_ns[COMPARE_CANDIDATE]), "difference_us",
                     json_micros(cause->difference_ns), "low_us", json_micros(cause->interval.low),
                     "high_us", json_micros(cause->interval.high));
}

static json_t *having_json(const struct cause_shift *cause, int side)
{
    return json_pack("{s:I, s:o}", "messages", (json_int_t)cause->messages[side], "us",
                     result_spread_json(&cause->spread_ns[side], 1000));
}

// name: the key for its name.
static json_t *cause_json(const struct cause_shift *cause, const char *name)
{
    json_t *object = change_json(cause);
    json_object_set_new(object, name, json_clean_text(cause->name));
    json_object_set_new(object, "role", json_string(role_name(cause->role)));
    json_object_set_new(object, "category", json_clean_text(cause->category));
    json_object_set_new(object, "explains", json_boolean(cause->explains));
    json_object_set_new(object, "base_share", json_number_or_null(cause->longer[COMPARE_BASE]));
    json_object_set_new(object, "candidate_share",
                        json_number_or_null(cause->longer[COMPARE_CANDIDATE]));
    json_object_set_new(object, "normal_us", json_micros(cause->normal_ns));
    json_object_set_new(object, "median_difference_us", json_micros(cause->median_difference_ns));
    json_object_set_new(object, "median_difference_ci_us",
                        isnan(cause->median_difference_ns)
                            ? json_null()
                            : interval_json(&cause->median_interval, 1000));
    json_object_set_new(object, "spread",
                        json_pack("{s:o, s:o}", "base", having_json(cause, COMPARE_BASE),
                                  "candidate", having_json(cause, COMPARE_CANDIDATE)));
    return object;
}

static json_t *causes_json(const struct cause_shift_array *causes, const char *name)
{
    json_t *list = json_array();
    for (size_t i = 0; i < causes->count; i++)
        json_array_append_new(list, cause_json(&causes->items[i], name));
    return list;
}

// The time in the functions themselves, without their callees.
static json_t *functions_json(const struct slice_shift *slice)
{
    bool known =
        slice->function_messages[COMPARE_BASE] && slice->function_messages[COMPARE_CANDIDATE];
    return json_pack("{s:b, s:I, s:I, s:o}", "available", known, "base",
                     (json_int_t)slice->function_messages[COMPARE_BASE], "candidate",
                     (json_int_t)slice->function_messages[COMPARE_CANDIDATE], "changes",
                     causes_json(&slice->functions, "function"));
}

static json_t *categories_json(const struct slice_shift *slice)
{
    json_t *categories = json_array();
    for (size_t i = 0; i < slice->categories.count; i++) {
        const struct category_shift *one = &slice->categories.items[i];
        json_array_append_new(categories,
                              json_pack("{s:o, s:o}", "category", json_clean_text(one->category),
                                        "difference_us", json_micros(one->difference_ns)));
    }
    return categories;
}

// --- a slice of one side -----------------------------------------------------------------

static json_t *queue_json(const struct slice_profile *profile)
{
    json_t *queue = json_array();
    for (int kind = 0; profile->has_views && kind < QUEUE_KINDS; kind++) {
        const struct queue_summary *of = &profile->queue[kind];
        json_t *one = json_pack("{s:s}", "kind", queue_kind_name(of->kind));
        result_put_json(one, "", queue_side_fields, &of->sides[VIEW_SLICE]);
        json_array_append_new(queue, one);
    }
    return queue;
}

static json_t *blocking_json(const struct slice_profile *profile)
{
    json_t *scopes = json_array();
    for (int scope = 0; profile->has_views && scope < BLOCKING_SCOPES; scope++) {
        json_t *one = json_object();
        result_put_json(one, "", blocking_fields, &profile->blocking[scope]);
        json_array_append_new(scopes, one);
    }
    return scopes;
}

static json_t *find_context(json_t *list, const struct core_context *wanted)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
    {
        if (json_integer_value(json_object_get(one, "core")) == wanted->core &&
            strcmp(json_string_value(json_object_get(one, "role")), role_name(wanted->role)) == 0 &&
            strcmp(json_string_value(json_object_get(one, "context")), wanted->name) == 0)
            return one;
    }
    return NULL;
}

// Over all runs of the side: the causes' shares of their messages' time.
static json_t *contexts_json(const struct run_set *set, const struct diagnosis_slice *slice)
{
    json_t *contexts = json_array();
    double sum = 0;
    for (size_t r = 0; r < set->profiles.count; r++)
        sum += run_set_profile(set, r, slice)->context_ns;
    for (size_t r = 0; r < set->profiles.count; r++) {
        const struct core_context_array *all = &run_set_profile(set, r, slice)->contexts;
        for (size_t i = 0; i < all->count; i++) {
            double share = all->items[i].ns[VIEW_SLICE] / sum;
            json_t *known = r ? find_context(contexts, &all->items[i]) : NULL;
            if (known)
                json_real_set(json_object_get(known, "share"),
                              json_real_value(json_object_get(known, "share")) + share);
            else if (share > 0)
                json_array_append_new(contexts, json_pack("{s:s, s:i, s:s, s:f}", "role",
                                                          role_name(all->items[i].role), "core",
                                                          (int)all->items[i].core, "context",
                                                          all->items[i].name, "share", share));
        }
    }
    return contexts;
}

static json_t *side_json(const struct comparison *comparison, size_t slice, int side)
{
    const struct run_set *set = comparison->sides[side];
    const struct slice_shift *shift = &comparison->shifts.items[slice].shift;
    json_t *object = json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:o}", "runs", (json_int_t)shift->runs[side], "messages",
        (json_int_t)shift->messages[side], "mean_us", json_micros(shift->mean_ns[side]), "low_us",
        json_micros(shift->low_ns[side]), "high_us", json_micros(shift->high_ns[side]), "contexts",
        contexts_json(set, &comparison->slices.items[slice]));
    if (set->profiles.count ==
        1) { // the median over several runs does not follow from their medians
        const struct slice_profile *only = comparison_profile(comparison, side, 0, slice);
        json_object_set_new(object, "queue", queue_json(only));
        json_object_set_new(object, "blocking", blocking_json(only));
    }
    return object;
}

static json_t *slice_json(const struct comparison *comparison, size_t index)
{
    const struct compared_slice *slice = &comparison->shifts.items[index];
    const struct slice_shift *shift = &slice->shift;
    json_t *object = json_pack(
        "{s:s, s:b, s:o, s:b, s:o, s:o, s:o, s:o}", "slice", shift->words, "asked",
        index < comparison->asked, "verdict", json_clean_text(slice->verdict), "available",
        shift->available, "latency", shift->available ? change_json(&shift->latency) : json_null(),
        "changes", causes_json(&shift->causes, "cause"), "categories", categories_json(shift),
        "functions", functions_json(shift));
    for (int side = 0; side < COMPARE_SIDES; side++)
        json_object_set_new(object, side_names[side], side_json(comparison, index, side));
    return object;
}

// --- percentiles and sides -----------------------------------------------------------------------

static json_t *percentile_json(const struct comparison *comparison,
                               const struct compared_percentile *percentile)
{
    const struct percentile_shift *shift = &percentile->shift;
    json_t *object =
        json_pack("{s:s, s:o, s:b, s:s, s:o, s:o}", "percentile", percentile->name, "verdict",
                  json_clean_text(percentile->verdict), "known", shift->known, "around",
                  comparison->shifts.items[percentile->around].shift.words, "change",
                  json_number_or_null(shift->shift), "change_ci",
                  shift->known ? interval_json(&shift->interval, 1) : json_null());
    const char *const us[COMPARE_SIDES] = {"base_us", "candidate_us"}, *const ci[COMPARE_SIDES] = {
                                                                           "base_ci_us",
                                                                           "candidate_ci_us"};
    for (int side = 0; side < COMPARE_SIDES; side++) {
        json_set_percentile(object, us[side], shift->ns[side] / 1000);
        json_object_set_new(object, ci[side],
                            shift->known ? interval_json(&shift->ns_interval[side], 1000)
                                         : json_null());
    }
    return object;
}

json_t *comparison_percentiles_json(const struct comparison *comparison)
{
    json_t *percentiles = json_array();
    for (size_t i = 0; i < comparison->percentiles.count; i++)
        json_array_append_new(percentiles,
                              percentile_json(comparison, &comparison->percentiles.items[i]));
    return percentiles;
}

// Which share of the requests takes at least as long as a latency: from all of them to a single
// one, at logarithmic steps.
static json_t *curve_json(const double *sorted, size_t count)
{
    enum { POINTS_PER_DECADE = 40 };
    json_t *curve = json_array();
    size_t last = SIZE_MAX; // ranks of neighbouring points coincide in the tail
    for (int i = 0; count; i++) {
        double slower = pow(10, -(double)i / POINTS_PER_DECADE);
        size_t above = (size_t)ceil(slower * (double)count), rank = count - (above ? above : 1);
        if (rank != last)
            json_array_append_new(
                curve, json_pack("[o, o]", json_number_or_null(slower), json_micros(sorted[rank])));
        last = rank;
        if (slower * (double)count <= 1)
            break;
    }
    return curve;
}

static json_t *set_json(const struct run_set *set, const struct latency_set *latencies)
{
    size_t count;
    const double *sorted = latency_set_sorted(latencies, &count);
    json_t *latency = json_object();
    uint64_t scheduled = 0, answered = 0, joined = 0;
    for (int q = 0; q < LATENCY_QUANTILES; q++) {
        const double ns = quantile_sorted(sorted, count, latency_quantiles[q]);
        json_set_percentile(latency, latency_quantile_names[q],
                            quantile_if_seen(ns, count, latency_quantiles[q]) / 1000);
    }
    for (size_t r = 0; r < set->profiles.count; r++) {
        scheduled += set->profiles.items[r].scheduled;
        answered += set->profiles.items[r].answered;
        joined += set->profiles.items[r].joined;
    }
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:o, s:o}", "path", set->path,
                     "name", set->name, "runs", (json_int_t)set->profiles.count, "requests",
                     (json_int_t)scheduled, "answered", (json_int_t)answered, "joined",
                     (json_int_t)joined, "offered_rate", json_number_or_null(set->offered_rate),
                     "achieved_rate", json_number_or_null(set->achieved_rate), "inconclusive_loads",
                     (json_int_t)set->inconclusive, "latency_us", latency, "curve",
                     curve_json(sorted, count));
}

json_t *comparison_json(const struct comparison *comparison)
{
    json_t *slices = json_array();
    for (size_t i = 0; i < comparison->shifts.count; i++)
        json_array_append_new(slices, slice_json(comparison, i));
    json_t *document = json_pack(
        "{s:s, s:f, s:i, s:i, s:i, s:o, s:o, s:s, s:o}", "taillight_version", TAILLIGHT_VERSION,
        "confidence", COMPARE_CONFIDENCE, "blocks", RESAMPLE_BLOCKS, "resamples", RESAMPLES, "seed",
        RESAMPLE_SEED, "warning", json_clean_text(comparison->warning), "percentiles",
        comparison_percentiles_json(comparison), "slice",
        comparison->shifts.items[comparison->gate_slice].shift.words, "slices", slices);
    const char *load = comparison->sides[COMPARE_CANDIDATE]->load;
    if (load[0])
        json_object_set_new(document, "load", json_string(load));
    for (int side = 0; side < COMPARE_SIDES; side++)
        json_object_set_new(document, side_names[side],
                            set_json(comparison->sides[side], comparison->latencies[side]));
    return document;
}
