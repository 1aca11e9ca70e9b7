// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/attribution.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diagnosis/functions.h"
#include "base/quantile.h"
#include "base/array.h"

static int compare_ns_down(const void *left, const void *right)
{
    const struct attribution *a = left, *b = right;
    if (a->ns < b->ns || a->ns > b->ns)
        return a->ns > b->ns ? -1 : 1;
    return order_of(a->cause, b->cause);
}

// What explaining one message after another needs.
struct explainer {
    struct diagnosis *out;
    struct decomposer *decomposer;
    struct component_share_array shares;
    struct path_share_array paths;
    struct function_analysis functions;
    struct index_array known; // for each path and anomaly: its component + 1; 0: none yet
};

// Adds ns to what a cause contributes to the message whose attributions begin at `first`. Several
// call paths to one function are one cause. Causes are still component numbers here.
static int push_attribution(struct diagnosis *out, size_t first, uint64_t lifetime,
                            uint32_t component, double ns)
{
    for (size_t i = first; i < out->attributions.count; i++) {
        if (out->attributions.items[i].cause == component) {
            out->attributions.items[i].ns += (float)ns;
            return 0;
        }
    }
    return array_push(
        &out->attributions,
        (struct attribution){.lifetime = lifetime, .cause = component, .ns = (float)ns});
}

// Whether a component's time is compared with its usual scatter. Time in which others block a
// message is never normal, so it is not; gaps in which nothing runs are no such time.
static bool component_scatters(const struct component *component)
{
    return component->class != CAUSE_BLOCKING;
}

// A function's own category, or else its caller's, since a helper's name says little about what it
// is used for.
static const char *category_of_path(const struct explainer *explainer, uint32_t path)
{
    const struct path_node *nodes = explainer->decomposer->paths.nodes.items;
    const struct component_table *table = explainer->decomposer->table;
    const char *category = NULL;
    uint32_t outermost = path;
    for (; path != NO_PATH && !category; outermost = path, path = nodes[path].parent)
        category =
            categories_of_function(table->categories, table->host->names.items[nodes[path].name]);
    if (category || nodes[outermost].component == COMPONENT_APPLICATION)
        return category ? category : "application";
    return nodes[outermost].kernel ? "kernel"
                                   : table->components.items[nodes[outermost].component].category;
}

static int64_t component_of_found(struct explainer *explainer, const struct function_cause *found,
                                  uint32_t within)
{
    size_t slot = (size_t)found->path * ANOMALIES + found->anomaly;
    while (explainer->known.count <= slot)
        if (array_push(&explainer->known, 0u) < 0)
            return -1;
    if (explainer->known.items[slot])
        return (int64_t)explainer->known.items[slot] - 1;
    struct component_table *table = explainer->decomposer->table;
    uint32_t name = explainer->decomposer->paths.nodes.items[found->path].name;
    int64_t component = component_of_function(table, table->host->names.items[name], found->anomaly,
                                              within, category_of_path(explainer, found->path));
    explainer->known.items[slot] = (uint32_t)(component + 1); // 0 after a failure
    return component;
}

// Appends the functions that deviate within a component that took `beyond` more than usual; sets
// how much they explain.
static int attribute_functions(struct explainer *explainer, size_t first, uint64_t lifetime,
                               uint32_t within, double beyond, double *explained)
{
    struct function_analysis *functions = &explainer->functions;
    *explained = function_analysis_explain(functions, within, beyond);
    for (size_t i = 0; i < functions->found.count; i++) {
        const struct function_cause *found = &functions->found.items[i];
        int64_t component = component_of_found(explainer, found, within);
        if (component < 0 ||
            push_attribution(explainer->out, first, lifetime, (uint32_t)component, found->ns) < 0)
            return -1;
    }
    return functions->out_of_memory ? -1 : 0;
}

// Appends what one component added to the message.
static int attribute_component(struct explainer *explainer, size_t first,
                               const struct component_share *share,
                               const struct reference *reference)
{
    // Components are added as functions are found: no pointer to one stays valid.
    struct component component = explainer->decomposer->table->components.items[share->component];
    struct normal normal = reference_component(reference, share->component);
    double granularity = explainer->out->granularity_ns;
    double beyond = share->ns - normal.ns, explained = 0;
    double unusual = component_scatters(&component)
                         ? fmax(granularity, UNUSUAL_SCATTER * normal.scatter_ns)
                         : granularity;
    if (beyond < granularity)
        return 0;
    // When the context itself is unexpected, its functions are not reported as well.
    bool expected = component.class == CAUSE_UNEXPLAINED || normal.ns > 0;
    if (component.functions && expected &&
        attribute_functions(explainer, first, share->lifetime, share->component, beyond,
                            &explained) < 0)
        return -1;
    if (beyond < unusual || explained >= NESTED_EXPLAINS * beyond)
        return 0;
    return push_attribution(explainer->out, first, share->lifetime, share->component,
                            beyond - explained);
}

static int attribute_message(struct explainer *explainer, struct diagnosed_message *message,
                             const struct reference *reference)
{
    struct diagnosis *out = explainer->out;
    size_t first = out->attributions.count;
    if (message->deviation_ns <= 0)
        return 0;
    for (size_t i = 0; i < explainer->shares.count; i++)
        if (attribute_component(explainer, first, &explainer->shares.items[i], reference) < 0)
            return -1;
    // Other components may have taken less than usual and made up for some of it, so the causes are
    // scaled down to add up to the deviation at most.
    double sum = 0;
    for (size_t i = first; i < out->attributions.count; i++)
        sum += out->attributions.items[i].ns;
    double scale = sum > message->deviation_ns ? message->deviation_ns / sum : 1;
    for (size_t i = first; i < out->attributions.count; i++) {
        struct attribution *attribution = &out->attributions.items[i];
        attribution->ns = (float)(attribution->ns * scale);
        if (explainer->decomposer->table->components.items[attribution->cause].explains)
            message->explained_ns += attribution->ns;
    }
    if (message->explained_ns > message->deviation_ns)
        message->explained_ns = message->deviation_ns; // the sum of floats is not exact
    if (out->attributions.count > first)
        qsort(out->attributions.items + first, out->attributions.count - first,
              sizeof *out->attributions.items, compare_ns_down);
    return 0;
}

static int attribute_messages(struct diagnosis *out, struct decomposer *decomposer,
                              const struct reference_set *references)
{
    struct explainer explainer = {.out = out, .decomposer = decomposer};
    int result = 0;
    function_analysis_init(&explainer.functions, &decomposer->paths, out->granularity_ns);
    for (size_t i = 0; i < out->messages.count && result == 0; i++) {
        struct diagnosed_message *message = &out->messages.items[i];
        const struct lifetime *life = &decomposer->in->lifetimes[message->lifetime];
        const struct reference *reference = reference_of(references, life);
        message->deviation_ns =
            lifetime_part_ns(life, decomposer->in->part) - reference->latency_ns;
        explainer.shares.count = explainer.paths.count = 0;
        result = decompose(decomposer, message->lifetime, &explainer.shares, &explainer.paths);
        if (result == 0)
            result = function_analysis_begin(&explainer.functions, &explainer.paths, reference);
        if (result == 0)
            result = attribute_message(&explainer, message, reference);
    }
    function_analysis_fini(&explainer.functions);
    array_free(&explainer.shares);
    array_free(&explainer.paths);
    array_free(&explainer.known);
    return result;
}

static int compare_cause(const void *left, const void *right)
{
    const struct attribution *a = left, *b = right;
    return order_of(a->cause, b->cause) ?: order_of(a->ns, b->ns);
}

static struct cause summarise_cause(const struct component *component,
                                    const struct attribution *ascending, size_t count,
                                    double *scratch)
{
    struct cause cause = {.role = component->role,
                          .class = component->class,
                          .explains = component->explains,
                          .messages = count};
    memcpy(cause.name, component->name, sizeof cause.name);
    snprintf(cause.category, sizeof cause.category, "%s",
             component->category ? component->category : "other");
    for (size_t i = 0; i < count; i++) {
        scratch[i] = ascending[i].ns;
        cause.total_ns += scratch[i];
    }
    cause.min_ns = scratch[0];
    cause.p25_ns = quantile_sorted(scratch, count, 0.25);
    cause.median_ns = quantile_sorted(scratch, count, 0.5);
    cause.p75_ns = quantile_sorted(scratch, count, 0.75);
    cause.max_ns = scratch[count - 1];
    return cause;
}

static int compare_total_down(const void *left, const void *right)
{
    const struct cause *a = left, *b = right;
    if (a->total_ns < b->total_ns || a->total_ns > b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order ? order : (int)a->role - (int)b->role;
}

// Finds a cause by its component's name and role, which together are unique.
static uint32_t cause_of_component(const struct cause_array *causes,
                                   const struct component *component)
{
    for (size_t i = 0; i < causes->count; i++)
        if (causes->items[i].role == component->role &&
            strcmp(causes->items[i].name, component->name) == 0)
            return (uint32_t)i;
    return 0;
}

static int collect_causes(struct diagnosis *out, const struct component_array *components)
{
    size_t count = out->attributions.count;
    if (count == 0)
        return 0;
    struct attribution *sorted = malloc(count * sizeof *sorted);
    double *scratch = malloc(count * sizeof *scratch);
    uint32_t *renumber = calloc(components->count, sizeof *renumber);
    int result = sorted && scratch && renumber ? 0 : -1;
    if (result == 0) {
        memcpy(sorted, out->attributions.items, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_cause);
    }
    for (size_t first = 0; result == 0 && first < count;) {
        size_t after = first;
        while (after < count && sorted[after].cause == sorted[first].cause)
            after++;
        result = array_push(&out->causes, summarise_cause(&components->items[sorted[first].cause],
                                                          sorted + first, after - first, scratch));
        first = after;
    }
    if (result == 0) {
        array_sort(&out->causes, compare_total_down);
        for (size_t c = 0; c < components->count; c++)
            renumber[c] = cause_of_component(&out->causes, &components->items[c]);
        for (size_t i = 0; i < count; i++)
            out->attributions.items[i].cause = renumber[out->attributions.items[i].cause];
    }
    free(sorted);
    free(scratch);
    free(renumber);
    return result;
}

// Over the messages whose deviation is larger than the granularity.
static int compute_coverage(struct diagnosis *out)
{
    double *coverage = malloc((out->messages.count + 1) * sizeof *coverage);
    double explained = 0, deviation = 0;
    size_t count = 0;
    if (!coverage)
        return -1;
    for (size_t i = 0; i < out->messages.count; i++) {
        const struct diagnosed_message *message = &out->messages.items[i];
        if (message->deviation_ns <= out->granularity_ns)
            continue;
        coverage[count++] = message->explained_ns / message->deviation_ns;
        explained += message->explained_ns;
        deviation += message->deviation_ns;
    }
    quantile_sort(coverage, count);
    out->coverage_median = quantile_sorted(coverage, count, 0.5);
    out->coverage_min = count ? coverage[0] : (double)NAN;
    out->coverage_total = count ? explained / deviation : (double)NAN;
    free(coverage);
    return 0;
}

int attribute(struct diagnosis *out, struct decomposer *decomposer,
              const struct reference_set *references)
{
    if (attribute_messages(out, decomposer, references) < 0)
        return -1;
    if (collect_causes(out, &decomposer->table->components) < 0)
        return -1;
    return compute_coverage(out);
}
