// SPDX-License-Identifier: MIT
#include "analysis/compare/run_profile_functions.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/diagnosis/components.h"

void function_profiler_free(struct function_profiler *profiler)
{
    free(profiler->by_name);
    free(profiler->own);
    free(profiler->sums);
    *profiler = (struct function_profiler){.by_name = NULL};
}

// Makes room for `wanted` numbers, the new ones 0.
static int grow(double **items, size_t *capacity, size_t wanted)
{
    if (wanted <= *capacity)
        return 0;
    double *grown = realloc(*items, 2 * wanted * sizeof *grown);
    if (!grown)
        return -1;
    memset(grown + *capacity, 0, (2 * wanted - *capacity) * sizeof *grown);
    *items = grown;
    *capacity = 2 * wanted;
    return 0;
}

// The function of a path in the profile. Names that are cut to the same are one. -1: no memory.
static int64_t function_of(struct function_profiler *profiler, const struct path_node *node,
                           struct slice_profile *out)
{
    const struct component_table *table = profiler->decomposer->table;
    enum core_role role = table->components.items[node->component].role;
    size_t names = table->host->names.count;
    if (!profiler->by_name)
        profiler->by_name = calloc(names * ROLES + 1, sizeof *profiler->by_name);
    if (!profiler->by_name)
        return -1;
    uint32_t *known = &profiler->by_name[node->name * ROLES + role];
    if (*known)
        return *known - 1;
    struct profile_component function = {.role = role, .explains = true};
    snprintf(function.name, sizeof function.name, "%s", table->host->names.items[node->name]);
    const char *category = categories_of_function(table->categories, function.name);
    snprintf(function.category, sizeof function.category, "%s",
             category       ? category
             : node->kernel ? "kernel"
                            : "application");
    size_t at = 0;
    while (at < out->components.count && (out->components.items[at].role != role ||
                                          strcmp(out->components.items[at].name, function.name)))
        at++;
    if (at == out->components.count && array_push(&out->components, function) < 0)
        return -1;
    *known = (uint32_t)at + 1;
    return (int64_t)at;
}

int function_profiler_add(struct function_profiler *profiler, const struct path_share_array *paths,
                          uint32_t block, struct slice_profile *out)
{
    const struct path_node *nodes = profiler->decomposer->paths.nodes.items;
    if (grow(&profiler->own, &profiler->path_capacity, profiler->decomposer->paths.nodes.count) < 0)
        return -1;
    for (size_t i = 0; i < paths->count; i++) {
        const struct path_share *share = &paths->items[i];
        profiler->own[share->path] += share->ns;
        if (nodes[share->path].parent != NO_PATH)
            profiler->own[nodes[share->path].parent] -= share->ns;
    }
    int result = 0;
    for (size_t i = 0; i < paths->count; i++) {
        uint32_t path = paths->items[i].path;
        int64_t function = result < 0 ? -1 : function_of(profiler, &nodes[path], out);
        if (function < 0 ||
            grow(&profiler->sums, &profiler->sum_capacity, out->components.count) < 0)
            result = -1;
        else
            profiler->sums[function] += profiler->own[path];
        profiler->own[path] = 0;
    }
    for (uint32_t f = 0; f < out->components.count && f < profiler->sum_capacity; f++) {
        double ns = profiler->sums[f];
        profiler->sums[f] = 0;
        if (ns < 0.5) // nothing but rounding
            continue;
        if (result == 0)
            result =
                array_push(&out->values,
                           (struct profile_value){.component = f, .block = block, .ns = (float)ns});
        out->block_latency_ns[block] += ns;
    }
    out->messages++;
    out->block_messages[block]++;
    return result;
}
