// SPDX-License-Identifier: MIT
//
// The page's samples: what they hint at, and the flame graph.
#include "analysis/report/page_json.h"

#include <stdlib.h>

enum {
    NODES_MOST = 4000,         // of the flame graph
    LEAST_PER_TEN_THOUSAND = 5 // of the samples; narrower ones could not be seen
};

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

// Columns, a parent before its children; what is too rare to be seen is left out.
static void put_nodes(struct page_builder *builder, json_t *object)
{
    const struct sample_profile *profile = &builder->run->evidence.samples.profile;
    const struct sample_nodes *nodes = &profile->nodes;
    json_t *parents = json_array(), *names = json_array(), *totals = json_array();
    int32_t *numbers = malloc((nodes->count + 1) * sizeof *numbers);
    int32_t count = 0;
    builder->failed |= !numbers;
    for (size_t i = 0; numbers && i < nodes->count; i++) {
        const struct sample_node *node = &nodes->items[i];
        bool root = i == 0;
        numbers[i] = -1;
        if (count == NODES_MOST || (!root && numbers[node->parent] < 0) ||
            node->total * 10000 < nodes->items[0].total * LEAST_PER_TEN_THOUSAND)
            continue;
        numbers[i] = count++;
        page_append(builder, parents, json_integer(root ? -1 : numbers[node->parent]));
        page_append(builder, names, page_text(root ? "all" : profile->names.items[node->name]));
        page_append(builder, totals, page_count(node->total));
    }
    free(numbers);
    page_put(builder, object, "parents", parents);
    page_put(builder, object, "functions", names);
    page_put(builder, object, "totals", totals);
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
    put_nodes(builder, object);
    return object;
}
