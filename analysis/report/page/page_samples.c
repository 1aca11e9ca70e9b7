// SPDX-License-Identifier: MIT
//
// The page's samples: what they hint at, and the flame graph.
#include "analysis/report/page/flame_columns.h"
#include "analysis/report/page/page_json.h"

static json_t *hints_build(struct page_builder *builder)
{
    const struct run_samples *samples = &builder->run->evidence.samples;
    json_t *list = json_array();
    for (size_t i = 0; i < samples->hints.count; i++) {
        const struct sample_hint *hint = &samples->hints.items[i];
        json_t *one = json_object(), *functions = json_array();
        page_put(builder, one, "cause", page_text(hint->cause));
        page_put(builder, one, "role", json_integer(hint->role));
        page_put(builder, one, "slice", page_count(hint->slice));
        page_put(builder, one, "reference", page_count(hint->reference));
        for (size_t k = 0; k < hint->function_count; k++) {
            const struct hint_function *function = &hint->functions[k];
            json_t *of = json_object();
            page_put(builder, of, "name", page_text(samples->profile.names.items[function->name]));
            page_put(builder, of, "slice", page_count(function->slice));
            page_put(builder, of, "reference", page_count(function->reference));
            page_append(builder, functions, of);
        }
        page_put(builder, one, "functions", functions);
        page_append(builder, list, one);
    }
    return list;
}

// Of all samples, and of those in the time of slow messages and of ordinary ones.
static json_t *flame_build(const struct run_samples *samples)
{
    static const char *const keys[] = {"totals", "slice_totals", "reference_totals"};
    const struct sample_profile *profile = &samples->profile;
    struct flame_columns columns;
    flame_columns_begin(&columns, sizeof keys / sizeof *keys);
    for (size_t i = 0; i < profile->nodes.count; i++) {
        const struct sample_node *node = &profile->nodes.items[i];
        const struct node_samples near =
            samples->hints.nodes ? samples->hints.nodes[i] : (struct node_samples){0};
        const uint64_t totals[] = {node->total, near.slice, near.reference};
        flame_columns_add(&columns, node->parent, i ? profile->names.items[node->name] : "all",
                          totals);
    }
    return flame_columns_json(&columns, keys);
}

json_t *page_samples_build(struct page_builder *builder)
{
    const struct run_samples *samples = &builder->run->evidence.samples;
    if (!samples->present)
        return json_null();
    json_t *object = json_object();
    page_put(builder, object, "event", page_text(samples->profile.event));
    page_put(builder, object, "frequency", page_count(samples->frequency));
    page_put(builder, object, "samples", page_count(samples->profile.samples.count));
    page_put(builder, object, "lost", page_count(samples->profile.lost));
    page_put(builder, object, "least", page_count(SAMPLE_HINT_LEAST));
    page_put(builder, object, "hints", hints_build(builder));
    page_put(builder, object, "flame", flame_build(samples));
    return object;
}
