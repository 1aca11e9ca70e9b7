// SPDX-License-Identifier: MIT
//
// The page's data on queues, core contexts and head-of-line blocking of one diagnosis: the same as
// in summary.json, and for each detailed message what was ahead of it and which requests blocked
// it.
#include <stdio.h>

#include "analysis/export/run_summary.h"
#include "analysis/report/page_json.h"
#include "analysis/run/run_analysis.h"

enum { BLOCKERS_SHOWN = 8 };

static json_t *scopes_build(struct page_builder *builder)
{
    json_t *scopes = json_array();
    for (int scope = 0; scope < BLOCKING_SCOPES; scope++)
        page_append(builder, scopes, page_text(blocking_scope_name((enum blocking_scope)scope)));
    return scopes;
}

// Column by column, as the messages; `first` says where a message's blockers begin.
static json_t *messages_build(struct page_builder *builder, const struct diagnosis *diagnosis,
                              size_t detailed)
{
    const struct diagnosis_views *views = &diagnosis->views;
    json_t *object = json_object(), *first = json_array(), *id = json_array(), *by = json_array(),
           *ns = json_array(), *all = json_array(), *ahead = json_array();
    uint64_t blockers = 0;
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        page_append(builder, ahead, json_array());
    for (size_t i = 0; i < detailed && i < views->messages.count; i++) {
        const struct message_view *view = &views->messages.items[i];
        uint64_t count = 0;
        for (size_t kind = 0; kind < QUEUE_KINDS; kind++)
            page_append(builder, json_array_get(ahead, kind), page_count(view->ahead[kind]));
        for (int scope = 0; scope < BLOCKING_SCOPES; scope++)
            count += view->blocked_by[scope];
        page_append(builder, all, page_count(count));
        page_append(builder, first, page_count(blockers));
        for (uint32_t b = 0; b < view->blockers && b < BLOCKERS_SHOWN; b++, blockers++) {
            const struct blocker *blocker = &views->blockers.items[view->first_blocker + b];
            const struct lifetime *life = &builder->run->lifetimes.all.items[blocker->lifetime];
            page_append(builder, id, page_count(life->request));
            page_append(builder, by, page_count(blocker->scope));
            page_append(builder, ns, page_ns((double)blocker->ns));
        }
    }
    page_append(builder, first, page_count(blockers));
    page_put(builder, object, "ahead", ahead);
    page_put(builder, object, "all", all);
    page_put(builder, object, "first", first);
    page_put(builder, object, "id", id);
    page_put(builder, object, "by", by);
    page_put(builder, object, "ns", ns);
    return object;
}

// The operations of the requests that are named, where the page does not have them otherwise.
static json_t *operations_build(struct page_builder *builder, const struct diagnosis *diagnosis,
                                size_t detailed)
{
    const struct diagnosis_views *views = &diagnosis->views;
    json_t *operations = json_object();
    for (size_t i = 0; i < detailed && i < views->messages.count; i++) {
        const struct message_view *view = &views->messages.items[i];
        for (uint32_t b = 0; b < view->blockers && b < BLOCKERS_SHOWN; b++) {
            uint64_t lifetime = views->blockers.items[view->first_blocker + b].lifetime;
            const struct lifetime *life = &builder->run->lifetimes.all.items[lifetime];
            char key[24];
            snprintf(key, sizeof key, "%llu", (unsigned long long)life->request);
            page_put(builder, operations, key, json_integer(life->operation));
        }
    }
    return operations;
}

json_t *page_views_build(struct page_builder *builder, const struct diagnosis *diagnosis,
                         size_t detailed)
{
    if (!diagnosis->views.available)
        return json_null();
    json_t *object = json_object();
    run_summary_add_views(object, builder->run, diagnosis);
    page_put(builder, object, "scopes", scopes_build(builder));
    page_put(builder, object, "messages", messages_build(builder, diagnosis, detailed));
    page_put(builder, object, "operations", operations_build(builder, diagnosis, detailed));
    return object;
}
