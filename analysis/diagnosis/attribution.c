// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/attribution.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/decomposition/decompose.h"
#include "analysis/diagnosis/cause_parts.h"
#include "analysis/diagnosis/diagnosis.h"
#include "analysis/diagnosis/reference.h"
#include "analysis/diagnosis/remedies.h"
#include "base/array.h"
#include "base/quantile.h"

// --- functions within a component ----------------------------------------------------------------
// Phase 3 (NSight §4.2, §5.2): which functions deviate within a component's time, and by how much.
// A function that is slower is not reported when functions it calls explain at least 80 % of its
// deviation. A function that is unexpected, or called more often, is reported itself, whatever it
// calls.

#define NESTED_EXPLAINS 0.8

// Beyond this many standard deviations something is unusual. Durations are lognormal rather than
// normal: with a limit of five, one of a hundred quiet servers would be called unusual by chance
// (`make bench BENCH=diagnosis`).
#define UNUSUAL_SCATTER 6

struct function_cause {
    uint32_t path;
    enum function_anomaly anomaly;
    double ns;
};
struct function_cause_array ARRAY_OF(struct function_cause);

struct function_analysis {
    const struct call_paths *paths;
    const struct reference *reference;
    double granularity_ns;
    // The message at hand: the functions of its shares, as a tree.
    const struct path_share_array *shares;
    // Numbers of shares are their index + 1; 0: none.
    uint32_t *first;    // by number: its first callee; first[0]: the first outermost function
    uint32_t *next;     // by index: its caller's next callee
    uint32_t *share_of; // by path
    size_t share_capacity, path_capacity;
    struct function_cause_array found;
    bool out_of_memory;
};

static void function_analysis_init(struct function_analysis *analysis,
                                   const struct call_paths *paths, double granularity_ns)
{
    *analysis = (struct function_analysis){.paths = paths, .granularity_ns = granularity_ns};
}

static void function_analysis_fini(struct function_analysis *analysis)
{
    free(analysis->first);
    free(analysis->next);
    free(analysis->share_of);
    array_free(&analysis->found);
}

static int indices_grow(uint32_t **items, size_t wanted, size_t from)
{
    uint32_t *grown = realloc(*items, wanted * sizeof *grown);
    if (!grown)
        return -1;
    memset(grown + from, 0, (wanted - from) * sizeof *grown);
    *items = grown;
    return 0;
}

static int make_room(struct function_analysis *analysis, size_t shares, size_t paths)
{
    if (shares > analysis->share_capacity) {
        if (indices_grow(&analysis->first, 2 * shares, analysis->share_capacity) < 0 ||
            indices_grow(&analysis->next, 2 * shares, analysis->share_capacity) < 0)
            return -1;
        analysis->share_capacity = 2 * shares;
    }
    if (paths > analysis->path_capacity) {
        if (indices_grow(&analysis->share_of, 2 * paths, analysis->path_capacity) < 0)
            return -1;
        analysis->path_capacity = 2 * paths;
    }
    return 0;
}

// Begins with another message. shares ascend by path. -1: no memory.
static int function_analysis_begin(struct function_analysis *analysis,
                                   const struct path_share_array *shares,
                                   const struct reference *reference)
{
    if (make_room(analysis, shares->count + 1, analysis->paths->nodes.count) < 0)
        return -1;
    analysis->shares = shares;
    analysis->reference = reference;
    memset(analysis->first, 0, (shares->count + 1) * sizeof *analysis->first);
    for (size_t i = 0; i < shares->count; i++) // callers first: paths ascend
        analysis->share_of[shares->items[i].path] = (uint32_t)i + 1;
    for (size_t i = shares->count; i-- > 0;) {
        uint32_t parent = analysis->paths->nodes.items[shares->items[i].path].parent;
        uint32_t above = parent == NO_PATH ? 0 : analysis->share_of[parent];
        analysis->next[i] = analysis->first[above]; // first[0]: the outermost functions
        analysis->first[above] = (uint32_t)i + 1;
    }
    return 0;
}

static double deviation_threshold(const struct function_analysis *analysis, struct normal normal)
{
    return fmax(analysis->granularity_ns, UNUSUAL_SCATTER * normal.scatter_ns);
}

static double report_function(struct function_analysis *analysis, uint32_t path,
                              enum function_anomaly anomaly, double ns)
{
    if (array_push(&analysis->found,
                   (struct function_cause){.path = path, .anomaly = anomaly, .ns = ns}) < 0)
        analysis->out_of_memory = true;
    return ns;
}

// Scales the findings since `first` down so that they add up to `most` at the most.
static double shrink_findings(struct function_analysis *analysis, size_t first, double sum,
                              double most)
{
    if (sum <= most)
        return sum;
    for (size_t i = first; i < analysis->found.count; i++)
        analysis->found.items[i].ns *= most / sum;
    return most;
}

static double explain_callees(struct function_analysis *analysis, size_t caller);

// A function took `more` ns longer than usual: returns how much of that is explained.
static double explain_one(struct function_analysis *analysis, size_t index)
{
    const struct path_share *share = &analysis->shares->items[index];
    struct normal normal = reference_path(analysis->reference, share->path);
    double calls = reference_path_calls(analysis->reference, share->path);
    double more = share->ns - normal.ns;
    if (more < analysis->granularity_ns)
        return 0;
    bool unusual = more >= deviation_threshold(analysis, normal);
    if (unusual && normal.ns <= 0 && calls <= 0)
        return report_function(analysis, share->path, FUNCTION_UNEXPECTED, more);
    if (unusual && calls > 0 && share->calls > calls &&
        (share->calls - calls) * normal.ns / calls >= NESTED_EXPLAINS * more)
        return report_function(analysis, share->path, FUNCTION_MORE_CALLS, more);
    size_t first = analysis->found.count;
    double nested = shrink_findings(analysis, first, explain_callees(analysis, index + 1), more);
    if (unusual && nested < NESTED_EXPLAINS * more)
        nested += report_function(analysis, share->path, FUNCTION_SLOWER, more - nested);
    return nested;
}

static double explain_callees(struct function_analysis *analysis, size_t caller)
{
    double sum = 0;
    for (uint32_t at = analysis->first[caller]; at; at = analysis->next[at - 1])
        sum += explain_one(analysis, at - 1);
    return sum;
}

// Puts the functions of one component that deviate into analysis->found; their sum, which is
// returned, is `budget_ns` at most.
static double function_analysis_explain(struct function_analysis *analysis, uint32_t component,
                                        double budget_ns)
{
    double sum = 0;
    analysis->found.count = 0;
    for (uint32_t at = analysis->first[0]; at; at = analysis->next[at - 1]) {
        const struct path_share *share = &analysis->shares->items[at - 1];
        if (analysis->paths->nodes.items[share->path].component == component)
            sum += explain_one(analysis, at - 1);
    }
    return shrink_findings(analysis, 0, sum, budget_ns);
}

// --- messages ------------------------------------------------------------------------------------

static int compare_ns_down(const void *left, const void *right)
{
    const struct attribution *a = left, *b = right;
    return order_of(b->ns, a->ns) ?: order_of(a->cause, b->cause);
}

// What explaining one message after another needs.
struct explainer {
    struct diagnosis *out;
    struct decomposer *decomposer;
    struct component_share_array shares;
    struct path_share_array paths;
    struct function_analysis functions;
    struct part_sum_array parts;
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

// Whether a component's time is compared with its usual scatter. Time that a message should have
// none of (others ahead of it, a lock, a timer, another program) is never normal, so it is not:
// where most messages have it, in varying amounts, none takes six deviations more than usual.
static bool component_scatters(const struct component *component)
{
    const struct remedy *remedy = component->category ? remedy_of(component->category) : NULL;
    return component->class != CAUSE_BLOCKING && !component->intrudes &&
           (!component->explains || !remedy || remedy->expected);
}

// A function's own category, or else its caller's, since a helper's name says little about what it
// is used for.
static const char *category_of_path(const struct explainer *explainer, uint32_t path)
{
    const struct path_node *nodes = explainer->decomposer->paths.nodes.items;
    const struct component_table *table = explainer->decomposer->table;
    const struct path_node *function = &nodes[path];
    const char *category = NULL;
    for (; path != NO_PATH && !category; path = nodes[path].parent)
        category = categories_of_function(
            table->categories, table->host->names.items[nodes[path].name], nodes[path].kernel);
    if (category || function->kernel)
        return category ? category : "kernel";
    return table->components.items[function->component].category;
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

// Whether every message has some of a component's time, more or less.
static bool is_ordinary(const struct explainer *explainer, const struct reference *reference,
                        uint32_t component)
{
    return reference_component(reference, component).ns > 0 &&
           component_scatters(&explainer->decomposer->table->components.items[component]);
}

// Other components may have taken less than usual and made up for some of what the causes took, so
// these are cut down to add up to the deviation at most. Components that every message has some of
// trade with one another (it was quicker on the network, and waited longer for its core), so theirs
// goes first: what a message should have none of comes on top of all of that.
static void cut_to_deviation(struct explainer *explainer, size_t first, double deviation_ns,
                             const struct reference *reference)
{
    struct attribution *all = explainer->out->attributions.items;
    const size_t count = explainer->out->attributions.count;
    double sums[2] = {0}; // of the ordinary ones second
    for (size_t i = first; i < count; i++) {
        const bool ordinary = is_ordinary(explainer, reference, all[i].cause);
        sums[ordinary] += all[i].ns;
    }
    const double excess = sums[0] + sums[1] - deviation_ns;
    if (excess <= 0)
        return;
    const double ordinary_scale = sums[1] > excess ? 1 - excess / sums[1] : 0;
    const double scale = sums[1] > excess ? 1 : deviation_ns / sums[0];
    size_t kept = first;
    for (size_t i = first; i < count; i++) {
        const bool ordinary = is_ordinary(explainer, reference, all[i].cause);
        all[i].ns = (float)(all[i].ns * (ordinary ? ordinary_scale : scale));
        if (all[i].ns > 0)
            all[kept++] = all[i];
    }
    explainer->out->attributions.count = kept;
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
    cut_to_deviation(explainer, first, message->deviation_ns, reference);
    for (size_t i = first; i < out->attributions.count; i++) {
        const struct attribution *attribution = &out->attributions.items[i];
        const struct component *cause =
            &explainer->decomposer->table->components.items[attribution->cause];
        if (cause->explains)
            message->explained_ns += attribution->ns;
        if (cause->apart)
            message->apart_ns += attribution->ns;
    }
    if (message->explained_ns > message->deviation_ns)
        message->explained_ns = message->deviation_ns; // the sum of floats is not exact
    if (cause_parts_fold(&explainer->parts, &out->attributions, first,
                         &explainer->decomposer->table->components) < 0)
        return -1;
    if (out->attributions.count > first)
        qsort(out->attributions.items + first, out->attributions.count - first,
              sizeof *out->attributions.items, compare_ns_down);
    return 0;
}

// *parts: what they added, to be freed in any case.
static int attribute_messages(struct diagnosis *out, struct decomposer *decomposer,
                              const struct reference_set *references, struct part_sum_array *parts)
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
    *parts = explainer.parts;
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
                          .apart = component->apart,
                          .messages = count};
    memcpy(cause.name, component->name, sizeof cause.name);
    snprintf(cause.tier, sizeof cause.tier, "%s", component->tier);
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
    return order_of(b->total_ns, a->total_ns) ?:
           strcmp(a->name, b->name) ?:
           (int)a->role - (int)b->role;
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

static int collect_causes(struct diagnosis *out, const struct component_array *components,
                          const struct part_sum_array *parts)
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
        struct cause cause = summarise_cause(&components->items[sorted[first].cause],
                                             sorted + first, after - first, scratch);
        cause_parts_put(&cause, sorted[first].cause, parts, components);
        result = array_push(&out->causes, cause);
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

// Over the messages whose deviation is larger than the granularity, without what stands apart.
static int compute_coverage(struct diagnosis *out)
{
    double *coverage = malloc((out->messages.count + 1) * sizeof *coverage);
    double explained = 0, deviation = 0;
    size_t count = 0;
    if (!coverage)
        return -1;
    for (size_t i = 0; i < out->messages.count; i++) {
        const struct diagnosed_message *message = &out->messages.items[i];
        double own = message->deviation_ns - message->apart_ns;
        if (own <= out->granularity_ns)
            continue;
        coverage[count++] = fmin(message->explained_ns / own, 1);
        explained += fmin(message->explained_ns, own);
        deviation += own;
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
    struct part_sum_array parts = {0};
    int result = attribute_messages(out, decomposer, references, &parts);
    if (result == 0)
        result = collect_causes(out, &decomposer->table->components, &parts);
    array_free(&parts);
    return result < 0 ? -1 : compute_coverage(out);
}
