// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/call_paths.h"

#include <stdlib.h>

#include "base/hash.h"

void call_paths_free(struct call_paths *paths)
{
    array_free(&paths->nodes);
    array_free(&paths->touched);
    map_free(&paths->numbers);
    *paths = (struct call_paths){0};
}

// The node of a function called at `parent`. NO_PATH: no memory.
static uint32_t find_or_add(struct call_paths *paths, uint32_t parent, uint32_t component,
                            uint32_t name)
{
    uint64_t hash = hash_pair((uint64_t)parent << 32 | name, component);
    const struct path_node *nodes = paths->nodes.items;
    uint32_t node = map_find(&paths->numbers, hash, at,
                             nodes[at].parent == parent && nodes[at].name == name &&
                                 nodes[at].component == component);
    if (node != MAP_NONE)
        return node;
    struct path_node one = {.parent = parent, .component = component, .name = name};
    if (array_push(&paths->nodes, one) < 0 ||
        map_add(&paths->numbers, hash, paths->nodes.count - 1) < 0)
        return NO_PATH;
    return (uint32_t)paths->nodes.count - 1;
}

// Neighbouring pieces share most of their open calls, so these are not looked up again.
static uint32_t node_at(struct call_paths *paths, unsigned level, uint32_t component, uint32_t name)
{
    if (level < paths->last_count && paths->last_component == component &&
        paths->last_name[level] == name)
        return paths->last[level];
    uint32_t parent = level ? paths->last[level - 1] : NO_PATH;
    uint32_t node = find_or_add(paths, parent, component, name);
    paths->last[level] = node;
    paths->last_name[level] = name;
    paths->last_count = level + 1; // the calls below belonged to another function
    paths->last_component = component;
    return node;
}

int call_paths_add(struct call_paths *paths, uint32_t component,
                   const struct span *const *functions, unsigned count, int64_t begin_ns,
                   int64_t end_ns, double share, int64_t context_begin_ns)
{
    double ns = (double)(end_ns - begin_ns) * share;
    for (unsigned level = 0; level < count; level++) {
        uint32_t at = node_at(paths, level, component, functions[level]->name);
        if (at == NO_PATH)
            return -1;
        struct path_node *node = &paths->nodes.items[at];
        if (node->ns <= 0 && node->calls == 0 && array_push(&paths->touched, at) < 0)
            return -1;
        node->kernel = functions[level]->id & SPAN_ID_KERNEL;
        node->ns += ns;
        node->calls += functions[level]->begin_ns == begin_ns && begin_ns != context_begin_ns;
    }
    return 0;
}

static int compare_paths(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return order_of(a, b);
}

int call_paths_take(struct call_paths *paths, struct path_share_array *out)
{
    int result = 0;
    if (out)
        array_sort(&paths->touched, compare_paths);
    for (size_t i = 0; i < paths->touched.count; i++) {
        struct path_node *node = &paths->nodes.items[paths->touched.items[i]];
        if (out && array_push(out, (struct path_share){.path = paths->touched.items[i],
                                                       .calls = node->calls,
                                                       .ns = node->ns}) < 0)
            result = -1;
        node->ns = 0;
        node->calls = 0;
    }
    paths->touched.count = 0;
    return result;
}
