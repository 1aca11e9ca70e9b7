// SPDX-License-Identifier: MIT
//
// summary.json's part on queues, core contexts and head-of-line blocking.
#include <math.h>

#include "analysis/export/run_json.h"
#include "analysis/run/run_internal.h"

static json_t *queue_json(const struct diagnosis_views *views)
{
    json_t *queue = json_array();
    for (int kind = 0; kind < QUEUE_KINDS; kind++) {
        const struct queue_summary *one = &views->queue[kind];
        json_array_append_new(
            queue,
            json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "kind",
                      queue_kind_name((enum queue_kind)kind), "messages_with_more",
                      (json_int_t)one->more, "ahead", run_json_spread(&one->ahead[VIEW_SLICE], 1),
                      "reference_ahead", run_json_spread(&one->ahead[VIEW_REFERENCE], 1), "us",
                      run_json_spread(&one->ns[VIEW_SLICE], 1000), "reference_us",
                      run_json_spread(&one->ns[VIEW_REFERENCE], 1000)));
    }
    return queue;
}

static json_t *contexts_json(const struct diagnosis_views *views)
{
    json_t *contexts = json_array();
    for (size_t i = 0; i < views->contexts.count; i++) {
        const struct core_context *one = &views->contexts.items[i];
        json_array_append_new(
            contexts,
            json_pack(
                "{s:s, s:i, s:s, s:o, s:o}", "role", role_name(one->role), "core", (int)one->core,
                "context", one->name, "share",
                json_number_or_null(one->ns[VIEW_SLICE] / views->context_ns[VIEW_SLICE]),
                "reference_share",
                json_number_or_null(one->ns[VIEW_REFERENCE] / views->context_ns[VIEW_REFERENCE])));
    }
    return contexts;
}

static json_t *scopes_json(const struct diagnosis_views *views)
{
    json_t *scopes = json_array();
    for (int scope = 0; scope < BLOCKING_SCOPES; scope++) {
        const struct blocking_summary *one = &views->blocking[scope];
        json_array_append_new(scopes,
                              json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "by",
                                        blocking_scope_name((enum blocking_scope)scope), "role",
                                        role_name(blocking_scope_role((enum blocking_scope)scope)),
                                        "messages", (json_int_t)one->messages, "total_us",
                                        json_number_or_null(one->total_ns / 1000), "median_us",
                                        json_number_or_null(one->median_ns / 1000), "mean_us",
                                        json_number_or_null(one->mean_ns[VIEW_SLICE] / 1000),
                                        "reference_mean_us",
                                        json_number_or_null(one->mean_ns[VIEW_REFERENCE] / 1000)));
    }
    return scopes;
}

static json_t *worst_json(const struct run_analysis *run, const struct diagnosis_views *views)
{
    json_t *worst = json_array();
    for (size_t i = 0; i < views->worst.count; i++) {
        const struct named_blocker *one = &views->worst.items[i];
        const struct lifetime *life = &run->lifetimes.all.items[one->lifetime];
        json_array_append_new(
            worst, json_pack("{s:I, s:i, s:i, s:I, s:o}", "request", (json_int_t)life->request,
                             "operation", (int)life->operation, "connection", (int)life->connection,
                             "messages", (json_int_t)one->messages, "total_us",
                             json_number_or_null(one->total_ns / 1000)));
    }
    return worst;
}

void run_summary_add_views(json_t *object, const struct run_analysis *run,
                           const struct diagnosis *diagnosis)
{
    const struct diagnosis_views *views = &diagnosis->views;
    bool has = views->available;
    json_object_set_new(object, "queue", has ? queue_json(views) : json_null());
    json_object_set_new(object, "contexts", has ? contexts_json(views) : json_null());
    json_object_set_new(object, "blocking",
                        has ? json_pack("{s:o, s:o}", "by", scopes_json(views), "worst_blockers",
                                        worst_json(run, views))
                            : json_null());
}
