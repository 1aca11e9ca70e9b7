// SPDX-License-Identifier: MIT
#include "analysis/attribution.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantile.h"

static int compare_ns_down(const void *left, const void *right)
{
    const struct attribution *a = left, *b = right;
    if (a->ns < b->ns || a->ns > b->ns)
        return a->ns > b->ns ? -1 : 1;
    return a->cause < b->cause ? -1 : a->cause > b->cause;
}

// Appends what each component added to the message; `cause` still is the component.
static int attribute_message(struct diagnosis *out, struct diagnosed_message *message,
                             const struct decomposer *decomposer,
                             const struct component_share_array *shares,
                             const struct reference *reference)
{
    size_t first = out->attributions.count;
    double sum = 0;
    for (size_t i = 0; i < shares->count; i++) {
        const struct component_share *share = &shares->items[i];
        double beyond = share->ns - reference_component_ns(reference, share->component);
        if (beyond < out->granularity_ns || message->deviation_ns <= 0)
            continue;
        sum += beyond;
        if (array_push(&out->attributions, (struct attribution){.lifetime = message->lifetime,
                                                                .cause = share->component,
                                                                .ns = (float)beyond}) < 0)
            return -1;
    }
    // Where other components took less than usual, these made up for it: what the causes added in
    // the end is no more than the deviation.
    double scale = sum > message->deviation_ns ? message->deviation_ns / sum : 1;
    for (size_t i = first; i < out->attributions.count; i++) {
        struct attribution *attribution = &out->attributions.items[i];
        attribution->ns = (float)(attribution->ns * scale);
        if (decomposer->table->components.items[attribution->cause].explains)
            message->explained_ns += attribution->ns;
    }
    if (message->explained_ns > message->deviation_ns && message->deviation_ns > 0)
        message->explained_ns = message->deviation_ns; // the sum of floats is not exact
    if (out->attributions.count > first)
        qsort(out->attributions.items + first, out->attributions.count - first,
              sizeof *out->attributions.items, compare_ns_down);
    return 0;
}

static int attribute_messages(struct diagnosis *out, struct decomposer *decomposer,
                              const struct reference_set *references)
{
    struct component_share_array shares = {0};
    int result = 0;
    for (size_t i = 0; i < out->messages.count && result == 0; i++) {
        struct diagnosed_message *message = &out->messages.items[i];
        const struct lifetime *life = &decomposer->in->lifetimes[message->lifetime];
        const struct reference *reference = reference_of(references, life->operation);
        message->deviation_ns = life->latency_ns - reference->latency_ns;
        shares.count = 0;
        result = decompose(decomposer, message->lifetime, &shares);
        if (result == 0)
            result = attribute_message(out, message, decomposer, &shares, reference);
    }
    array_free(&shares);
    return result;
}

static int compare_cause(const void *left, const void *right)
{
    const struct attribution *a = left, *b = right;
    if (a->cause != b->cause)
        return a->cause < b->cause ? -1 : 1;
    return a->ns < b->ns ? -1 : a->ns > b->ns;
}

static struct cause summarise(const struct component *component,
                              const struct attribution *ascending, size_t count, double *scratch)
{
    struct cause cause = {.role = component->role,
                          .class = component->class,
                          .explains = component->explains,
                          .messages = count};
    memcpy(cause.name, component->name, sizeof cause.name);
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

// The number of a cause by its component's name and role, which no two causes share.
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
        result = array_push(&out->causes, summarise(&components->items[sorted[first].cause],
                                                    sorted + first, after - first, scratch));
        first = after;
    }
    if (result == 0) {
        qsort(out->causes.items, out->causes.count, sizeof *out->causes.items, compare_total_down);
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

// Over the messages that deviate by more than can be told apart.
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
