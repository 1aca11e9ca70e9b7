// SPDX-License-Identifier: MIT
//
// The page's data on queues, core contexts and head-of-line blocking of one diagnosis: the same as
// in summary.json, and message by message what was ahead of it, which requests blocked it, and what
// its cores did, so that the page can show the same of some of them.
#include <stdio.h>

#include "analysis/decomposition/components.h"
#include "analysis/export/run_summary.h"
#include "analysis/lifetime/service_order.h"
#include "analysis/report/page/flame_columns.h"
#include "analysis/report/page/page_json.h"
#include "analysis/run/run_analysis.h"
#include "analysis/run/run_culprits.h"

enum { BLOCKERS_SHOWN = 8 };

static json_t *columns_new(struct page_builder *builder, size_t count)
{
    json_t *columns = json_array();
    for (size_t i = 0; i < count; i++)
        page_append(builder, columns, json_array());
    return columns;
}

static json_t *scopes_build(struct page_builder *builder)
{
    json_t *scopes = json_array();
    for (int scope = 0; scope < BLOCKING_SCOPES; scope++)
        page_append(builder, scopes, page_text(blocking_scope_name((enum blocking_scope)scope)));
    return scopes;
}

// A request's number; whose it is where it is none of the load's.
static json_t *blocker_id(const struct run_analysis *run, const struct blocker *blocker)
{
    char words[160];
    const char *owner =
        run_blocker_owner(run, blocker->lifetime, blocker->service, words, sizeof words);
    return owner ? page_text(owner)
                 : page_count(run->lifetimes.all.items[blocker->lifetime].request);
}

// The requests that blocked each; `first` says where a message's begin.
static void put_blockers(struct page_builder *builder, const struct diagnosis_views *views,
                         size_t detailed, json_t *object)
{
    json_t *first = json_array(), *id = json_array(), *by = json_array(), *ns = json_array(),
           *culprit = json_array();
    uint64_t blockers = 0;
    for (size_t i = 0; i < detailed; i++) {
        const struct message_view *view = &views->messages.items[i];
        page_append(builder, first, page_count(blockers));
        for (uint32_t b = 0; b < view->blockers && b < BLOCKERS_SHOWN; b++, blockers++) {
            const struct blocker *one = &views->blockers.items[view->first_blocker + b];
            page_append(builder, id, blocker_id(builder->run, one));
            page_append(builder, by, page_count(one->scope));
            page_append(builder, ns, page_ns((double)one->ns));
            page_append(builder, culprit,
                        one->culprit == NOT_SERVED ? json_null() : page_count(one->culprit));
        }
    }
    page_append(builder, first, page_count(blockers));
    page_put(builder, object, "first", first);
    page_put(builder, object, "id", id);
    page_put(builder, object, "by", by);
    page_put(builder, object, "ns", ns);
    page_put(builder, object, "culprit", culprit);
}

// What was ahead of each, by kind; how many blocked it, and for how long, by scope.
static void put_queues(struct page_builder *builder, const struct diagnosis_views *views,
                       size_t detailed, json_t *object)
{
    json_t *all = json_array(), *ahead = columns_new(builder, QUEUE_KINDS),
           *ahead_ns = columns_new(builder, QUEUE_KINDS),
           *blocked_ns = columns_new(builder, BLOCKING_SCOPES);
    for (size_t i = 0; i < detailed; i++) {
        const struct message_view *view = &views->messages.items[i];
        uint64_t count = 0;
        for (size_t kind = 0; kind < QUEUE_KINDS; kind++) {
            page_append(builder, json_array_get(ahead, kind), page_count(view->ahead[kind]));
            page_append(builder, json_array_get(ahead_ns, kind),
                        page_ns((double)view->ahead_ns[kind]));
        }
        for (size_t scope = 0; scope < BLOCKING_SCOPES; scope++) {
            count += view->blocked_by[scope];
            page_append(builder, json_array_get(blocked_ns, scope),
                        view->blocked_by[scope] ? page_ns((double)view->blocked_ns[scope])
                                                : json_null());
        }
        page_append(builder, all, page_count(count));
    }
    page_put(builder, object, "ahead", ahead);
    page_put(builder, object, "ahead_ns", ahead_ns);
    page_put(builder, object, "blocked_ns", blocked_ns);
    page_put(builder, object, "all", all);
}

// How long each one's cores were in which of the contexts.
static void put_contexts(struct page_builder *builder, const struct diagnosis_views *views,
                         size_t detailed, json_t *object)
{
    json_t *first = json_array(), *context = json_array(), *ns = json_array();
    uint64_t count = 0;
    for (size_t i = 0; i < detailed; i++) {
        const struct message_view *view = &views->messages.items[i];
        page_append(builder, first, page_count(count));
        for (uint32_t c = 0; c < view->contexts; c++, count++) {
            const struct context_time *one = &views->context_times.items[view->first_context + c];
            page_append(builder, context, page_count(one->context));
            page_append(builder, ns, page_ns((double)one->ns));
        }
    }
    page_append(builder, first, page_count(count));
    json_t *own = json_object();
    page_put(builder, own, "first", first);
    page_put(builder, own, "context", context);
    page_put(builder, own, "ns", ns);
    page_put(builder, object, "contexts", own);
}

// The slice's calls beside ordinary ones'; null: none are known.
static json_t *calls_build(const struct run_analysis *run, const struct diagnosis_views *views)
{
    static const char *const keys[] = {"slice_totals", "reference_totals"};
    struct flame_columns columns;
    char name[144];
    if (views->calls.count == 0)
        return json_null();
    flame_columns_begin(&columns, VIEW_SIDES);
    for (size_t i = 0; i < views->calls.count; i++) {
        const struct call_node *node = &views->calls.items[i];
        const uint64_t totals[] = {(uint64_t)node->ns[VIEW_SLICE],
                                   (uint64_t)node->ns[VIEW_REFERENCE]};
        const char *of = run->evidence.server.names.items[node->name];
        flame_columns_add(&columns, node->parent,
                          i ? component_context_name(of, node->kind, name, sizeof name) : "all",
                          totals);
    }
    return flame_columns_json(&columns, keys);
}

// The operations of the requests that are named, where the page does not have them otherwise.
static json_t *operations_build(struct page_builder *builder, const struct diagnosis *diagnosis,
                                size_t detailed)
{
    const struct diagnosis_views *views = &diagnosis->views;
    json_t *operations = json_object();
    for (size_t i = 0; i < detailed; i++) {
        const struct message_view *view = &views->messages.items[i];
        for (uint32_t b = 0; b < view->blockers && b < BLOCKERS_SHOWN; b++) {
            uint64_t lifetime = views->blockers.items[view->first_blocker + b].lifetime;
            char key[24];
            if (lifetime == NO_LIFETIME)
                continue;
            const struct lifetime *life = &builder->run->lifetimes.all.items[lifetime];
            if (life->load || life->earlier)
                continue;
            snprintf(key, sizeof key, "%llu", (unsigned long long)life->request);
            page_put(builder, operations, key, json_integer(life->operation));
        }
    }
    return operations;
}

json_t *page_views_build(struct page_builder *builder, const struct diagnosis *diagnosis,
                         size_t detailed)
{
    const struct diagnosis_views *views = &diagnosis->views;
    if (!views->available)
        return json_null();
    json_t *object = json_object(), *messages = json_object();
    detailed = detailed < views->messages.count ? detailed : views->messages.count;
    put_queues(builder, views, detailed, messages);
    put_blockers(builder, views, detailed, messages);
    put_contexts(builder, views, detailed, messages);
    run_summary_add_views(object, builder->run, diagnosis);
    page_put(builder, object, "scopes", scopes_build(builder));
    page_put(builder, object, "messages", messages);
    page_put(builder, object, "calls", calls_build(builder->run, views));
    page_put(builder, object, "operations", operations_build(builder, diagnosis, detailed));
    return object;
}
