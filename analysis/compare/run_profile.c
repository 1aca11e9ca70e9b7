// SPDX-License-Identifier: MIT
//
// What of a run is compared with another one.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/run_compare.h"
#include "analysis/compare/run_profile_functions.h"
#include "analysis/diagnosis/components.h"
#include "analysis/diagnosis/decompose.h"
#include "analysis/run/run_analysis.h"
#include "base/quantile.h"

static uint32_t block_of(const struct diagnosis_slice *slice, const struct run_analysis *run,
                         const struct lifetime *life)
{
    bool window = slice->from_ns != slice->to_ns;
    double from = (double)(window ? slice->from_ns : run->lifetimes.begin_ns);
    double to =
        (double)(window && slice->to_ns <= run->lifetimes.end_ns ? slice->to_ns
                                                                 : run->lifetimes.end_ns + 1);
    double at = ((double)life->stamp_ns[STAMP_INTENDED] - from) / (to - from);
    int block = (int)(at * COMPARE_BLOCKS);
    return (uint32_t)(block < 0 ? 0 : block >= COMPARE_BLOCKS ? COMPARE_BLOCKS - 1 : block);
}

// The functions of the message just taken apart, where they are known.
static int take_functions(struct slice_profile *out, struct function_profiler *profiler,
                          const struct path_share_array *paths, uint32_t block)
{
    if (!profiler->decomposer->traced)
        return 0;
    if (!out->functions)
        out->functions = calloc(1, sizeof *out->functions);
    if (!out->functions)
        return -1;
    out->functions->granularity_ns = out->granularity_ns;
    return function_profiler_add(profiler, paths, block, out->functions);
}

static int take_message(struct slice_profile *out, const struct run_analysis *run,
                        const struct lifetime *life, uint32_t block)
{
    out->block_messages[block]++;
    out->block_latency_ns[block] += life->latency_ns;
    struct profile_message message = {
        .request = life->request,
        .at_ns = (double)(life->stamp_ns[STAMP_INTENDED] - run->lifetimes.begin_ns),
        .latency_ns = life->latency_ns,
        .first = out->values.count};
    return array_push(&out->each, message);
}

static int take_values(struct slice_profile *out, struct decomposer *decomposer,
                       const struct run_analysis *run, const struct diagnosis *diagnosis)
{
    struct component_share_array shares = {0};
    struct path_share_array paths = {0};
    struct function_profiler functions = {.decomposer = decomposer};
    int result = 0;
    for (size_t i = 0; i < diagnosis->messages.count && result == 0; i++) {
        uint64_t lifetime = diagnosis->messages.items[i].lifetime;
        const struct lifetime *life = &run->lifetimes.all.items[lifetime];
        uint32_t block = block_of(&diagnosis->slice, run, life);
        out->mean_ns += life->latency_ns / (double)diagnosis->messages.count;
        shares.count = paths.count = 0;
        result = take_message(out, run, life, block);
        if (result == 0)
            result = decompose(decomposer, lifetime, &shares, &paths);
        for (size_t s = 0; s < shares.count && result == 0; s++)
            result = array_push(&out->values,
                                (struct profile_value){.component = shares.items[s].component,
                                                       .block = block,
                                                       .ns = (float)shares.items[s].ns});
        if (result == 0)
            result = take_functions(out, &functions, &paths, block);
    }
    array_free(&shares);
    array_free(&paths);
    function_profiler_free(&functions);
    return result;
}

static int take_components(struct slice_profile *out, const struct component_array *components)
{
    for (size_t i = 0; i < components->count; i++) {
        const struct component *from = &components->items[i];
        struct profile_component component = {.role = from->role, .explains = from->explains};
        memcpy(component.name, from->name, sizeof component.name);
        snprintf(component.category, sizeof component.category, "%s",
                 from->category ? from->category : "other");
        if (array_push(&out->components, component) < 0)
            return -1;
    }
    return 0;
}

static int take_views(struct slice_profile *out, const struct diagnosis_views *views)
{
    out->has_views = views->available;
    memcpy(out->queue, views->queue, sizeof out->queue);
    memcpy(out->blocking, views->blocking, sizeof out->blocking);
    out->context_ns = views->context_ns[VIEW_SLICE];
    for (size_t i = 0; i < views->contexts.count; i++)
        if (array_push(&out->contexts, views->contexts.items[i]) < 0)
            return -1;
    return 0;
}

static int take_slice(const struct run_analysis *run, const struct diagnosis *diagnosis,
                      struct slice_profile *out)
{
    struct diagnosis_input in;
    struct component_table table;
    struct decomposer decomposer;
    diagnosis_slice_words(&diagnosis->slice, out->words, sizeof out->words);
    out->available = !diagnosis->not_available;
    memcpy(out->reason, diagnosis->reason, sizeof out->reason);
    out->messages = diagnosis->messages.count;
    out->low_ns = diagnosis->slice_low_ns;
    out->high_ns = diagnosis->slice_high_ns;
    out->granularity_ns = diagnosis->granularity_ns;
    if (!out->available)
        return 0;
    run_diagnosis_input(run, &in);
    int result = component_table_init(&table, in.server, in.categories);
    decomposer_init(&decomposer, &in, &table);
    if (result == 0)
        result = take_values(out, &decomposer, run, diagnosis);
    if (result == 0)
        result = take_components(out, &table.components);
    if (result == 0)
        result = take_views(out, &diagnosis->views);
    decomposer_fini(&decomposer);
    component_table_fini(&table);
    return result;
}

enum { CURVE_POINTS_PER_DECADE = 40 };

static int take_curve(const struct run_analysis *run, struct run_profile *out)
{
    size_t count = run->lifetimes.all.count;
    double *latencies = malloc((count + 1) * sizeof *latencies);
    if (!latencies)
        return -1;
    for (size_t i = 0; i < count; i++)
        latencies[i] = run->lifetimes.all.items[i].latency_ns;
    quantile_sort(latencies, count);
    int result = 0;
    size_t last = SIZE_MAX; // ranks of neighbouring points coincide in the tail
    for (int i = 0; count && result == 0; i++) {
        double slower = pow(10, -(double)i / CURVE_POINTS_PER_DECADE);
        size_t above = (size_t)ceil(slower * (double)count), rank = count - (above ? above : 1);
        if (rank != last)
            result = array_push(&out->curve,
                                (struct curve_point){.slower = slower, .ns = latencies[rank]});
        last = rank;
        if (slower * (double)count <= 1)
            break;
    }
    free(latencies);
    return result;
}

int run_profile_take(const struct run_analysis *run, struct run_profile *out, struct error *err)
{
    *out = (struct run_profile){.scheduled = run->lifetimes.scheduled,
                                .answered = run->lifetimes.answered,
                                .joined = run->lifetimes.states[LIFETIME_WHOLE],
                                .offered_rate = run->lifetimes.offered_rate,
                                .achieved_rate = run->lifetimes.achieved_rate,
                                .latency = run->lifetimes.latency};
    memcpy(out->run_dir, run->evidence.run_dir, sizeof out->run_dir);
    memcpy(out->name, run->evidence.name, sizeof out->name);
    if (take_curve(run, out) < 0)
        return error_set(err, ERROR_FAILED, "no memory to compare %s", run->evidence.run_dir);
    for (size_t i = 0; i < run->findings.diagnoses.count; i++) {
        if (array_push(&out->slices, (struct slice_profile){0}) < 0 ||
            take_slice(run, &run->findings.diagnoses.items[i], &out->slices.items[i]) < 0)
            return error_set(err, ERROR_FAILED, "no memory to compare %s", run->evidence.run_dir);
    }
    return 0;
}

static void slice_profile_free(struct slice_profile *slice)
{
    array_free(&slice->components);
    array_free(&slice->values);
    array_free(&slice->each);
    array_free(&slice->contexts);
    if (slice->functions)
        slice_profile_free(slice->functions);
    free(slice->functions);
}

void run_profile_free(struct run_profile *profile)
{
    for (size_t i = 0; i < profile->slices.count; i++)
        slice_profile_free(&profile->slices.items[i]);
    array_free(&profile->slices);
    array_free(&profile->curve);
}
