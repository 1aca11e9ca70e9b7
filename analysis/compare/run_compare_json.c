// SPDX-License-Identifier: MIT
//
// The comparison of two runs for scripts (docs/compare-json.md).
#include <math.h>

#include "analysis/compare/run_compare.h"
#include "analysis/export/run_json.h"

static const char *const side_names[COMPARE_SIDES] = {"base", "candidate"};

static json_t *side_json(const struct change *change, int side)
{
    return json_pack("{s:I, s:o}", "messages", (json_int_t)change->messages[side], "us",
                     run_json_spread(&change->spread_ns[side], 1000));
}

// name: under which key its name is given; NULL: it has none.
static json_t *change_json(const struct change *change, const char *name)
{
    json_t *object =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "change", change_kind_name(change->kind),
                  "base_us", json_number_or_null(change->mean_ns[COMPARE_BASE] / 1000),
                  "candidate_us", json_number_or_null(change->mean_ns[COMPARE_CANDIDATE] / 1000),
                  "difference_us", json_number_or_null(change->difference_ns / 1000), "low_us",
                  json_number_or_null(change->low_ns / 1000), "high_us",
                  json_number_or_null(change->high_ns / 1000));
    if (name) {
        json_object_set_new(object, name, json_string(change->name));
        json_object_set_new(object, "role", json_string(role_name(change->role)));
        json_object_set_new(object, "category", json_string(change->category));
        json_object_set_new(object, "explains", json_boolean(change->explains));
        json_object_set_new(object, "base_share", json_number_or_null(change->share[COMPARE_BASE]));
        json_object_set_new(object, "candidate_share",
                            json_number_or_null(change->share[COMPARE_CANDIDATE]));
        json_object_set_new(object, "normal_us", json_number_or_null(change->normal_ns / 1000));
        json_object_set_new(object, "spread",
                            json_pack("{s:o, s:o}", "base", side_json(change, COMPARE_BASE),
                                      "candidate", side_json(change, COMPARE_CANDIDATE)));
    }
    return object;
}

static json_t *queue_json(const struct slice_profile *profile)
{
    json_t *queue = json_array();
    for (int kind = 0; profile->has_views && kind < QUEUE_KINDS; kind++)
        json_array_append_new(
            queue, json_pack("{s:s, s:o, s:o}", "kind", queue_kind_name((enum queue_kind)kind),
                             "ahead", run_json_spread(&profile->queue[kind].ahead[VIEW_SLICE], 1),
                             "us", run_json_spread(&profile->queue[kind].ns[VIEW_SLICE], 1000)));
    return queue;
}

static json_t *contexts_json(const struct slice_profile *profile)
{
    json_t *contexts = json_array();
    for (size_t i = 0; i < profile->contexts.count; i++) {
        const struct core_context *one = &profile->contexts.items[i];
        if (one->ns[VIEW_SLICE] > 0)
            json_array_append_new(
                contexts,
                json_pack("{s:s, s:i, s:s, s:o}", "role", role_name(one->role), "core",
                          (int)one->core, "context", one->name, "share",
                          json_number_or_null(one->ns[VIEW_SLICE] / profile->context_ns)));
    }
    return contexts;
}

static json_t *blocking_json(const struct slice_profile *profile)
{
    json_t *scopes = json_array();
    for (int scope = 0; profile->has_views && scope < BLOCKING_SCOPES; scope++) {
        const struct blocking_summary *one = &profile->blocking[scope];
        json_array_append_new(scopes,
                              json_pack("{s:s, s:s, s:I, s:o}", "by",
                                        blocking_scope_name((enum blocking_scope)scope), "role",
                                        role_name(blocking_scope_role((enum blocking_scope)scope)),
                                        "messages", (json_int_t)one->messages, "mean_us",
                                        json_number_or_null(one->mean_ns[VIEW_SLICE] / 1000)));
    }
    return scopes;
}

static json_t *profile_json(const struct slice_profile *profile)
{
    return json_pack(
        "{s:b, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "available", profile->available, "reason",
        profile->reason, "messages", (json_int_t)profile->messages, "mean_us",
        json_number_or_null(profile->available ? profile->mean_ns / 1000 : (double)NAN), "low_us",
        json_number_or_null(profile->low_ns / 1000), "high_us",
        json_number_or_null(profile->high_ns / 1000), "queue", queue_json(profile), "contexts",
        contexts_json(profile), "blocking", blocking_json(profile));
}

// What the functions themselves took, without what they called.
static json_t *functions_json(const struct slice_comparison *slice)
{
    json_t *changes = json_array(), *object = json_object();
    for (size_t i = 0; i < slice->functions.count; i++)
        json_array_append_new(changes, change_json(&slice->functions.items[i], "function"));
    for (int side = 0; side < COMPARE_SIDES; side++) {
        const struct slice_profile *functions = slice->sides[side]->functions;
        json_object_set_new(object, side_names[side],
                            json_integer(functions ? (json_int_t)functions->messages : 0));
    }
    json_object_set_new(object, "available", json_boolean(slice->has_functions));
    json_object_set_new(object, "changes", changes);
    return object;
}

static json_t *categories_json(const struct slice_comparison *slice)
{
    json_t *categories = json_array();
    for (size_t i = 0; i < slice->categories.count; i++) {
        const struct category_change *one = &slice->categories.items[i];
        json_array_append_new(categories,
                              json_pack("{s:s, s:o}", "category", one->category, "difference_us",
                                        json_number_or_null(one->difference_ns / 1000)));
    }
    return categories;
}

static json_t *slice_json(const struct slice_comparison *slice)
{
    json_t *changes = json_array();
    for (size_t i = 0; i < slice->changes.count; i++)
        json_array_append_new(changes, change_json(&slice->changes.items[i], "cause"));
    json_t *object = json_pack(
        "{s:s, s:s, s:b, s:o, s:o}", "slice", slice->sides[COMPARE_BASE]->words, "verdict",
        slice->verdict, "available", slice->available, "latency",
        slice->available ? change_json(&slice->latency, NULL) : json_null(), "changes", changes);
    json_object_set_new(object, "categories", categories_json(slice));
    json_object_set_new(object, "functions", functions_json(slice));
    for (int side = 0; side < COMPARE_SIDES; side++)
        json_object_set_new(object, side_names[side], profile_json(slice->sides[side]));
    return object;
}

static json_t *run_json(const struct run_profile *run)
{
    json_t *latency = json_object(), *intervals = json_object();
    for (int q = 0; q < LATENCY_QUANTILES; q++) {
        const struct quantile_interval *interval = &run->latency.interval_ns[q];
        json_object_set_new(latency, latency_quantile_names[q],
                            json_number_or_null(run->latency.value_ns[q] / 1000));
        json_object_set_new(intervals, latency_quantile_names[q],
                            interval->known
                                ? json_pack("[o, o]", json_number_or_null(interval->low / 1000),
                                            json_number_or_null(interval->high / 1000))
                                : json_null());
    }
    json_t *curve = json_array();
    for (size_t i = 0; i < run->curve.count; i++)
        json_array_append_new(curve,
                              json_pack("[o, o]", json_number_or_null(run->curve.items[i].slower),
                                        json_number_or_null(run->curve.items[i].ns / 1000)));
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "run_dir", run->run_dir,
                     "name", run->name, "requests", (json_int_t)run->scheduled, "answered",
                     (json_int_t)run->answered, "joined", (json_int_t)run->joined, "offered_rate",
                     json_number_or_null(run->offered_rate), "achieved_rate",
                     json_number_or_null(run->achieved_rate), "latency_us", latency,
                     "latency_ci_us", intervals, "curve", curve);
}

json_t *run_comparison_json(const struct run_comparison *comparison)
{
    json_t *slices = json_array();
    for (size_t i = 0; i < comparison->slices.count; i++)
        json_array_append_new(slices, slice_json(&comparison->slices.items[i]));
    json_t *object =
        json_pack("{s:s, s:f, s:i, s:o}", "taillight_version", TAILLIGHT_VERSION, "confidence",
                  COMPARE_CONFIDENCE, "blocks", COMPARE_BLOCKS, "slices", slices);
    for (int side = 0; side < COMPARE_SIDES; side++)
        json_object_set_new(object, side_names[side], run_json(&comparison->runs[side]));
    return object;
}
