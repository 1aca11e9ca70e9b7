// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/views_calls.h"

#include "base/hash.h"

void call_tree_free(struct call_tree *tree)
{
    array_free(&tree->nodes);
    map_free(&tree->by_call);
}

static uint32_t find_or_add(struct call_tree *tree, uint32_t parent, const struct span *span)
{
    uint64_t hash = hash_pair(parent, (uint64_t)span->kind << 32 | span->name);
    const struct call_node *nodes = tree->nodes.items;
    uint32_t found = map_find(&tree->by_call, hash, at,
                              nodes[at].parent == parent && nodes[at].kind == span->kind &&
                                  nodes[at].name == span->name);
    if (found != MAP_NONE)
        return found;
    struct call_node node = {.parent = parent, .name = span->name, .kind = (uint8_t)span->kind};
    if (array_push(&tree->nodes, node) < 0 ||
        map_add(&tree->by_call, hash, tree->nodes.count - 1) < 0)
        return MAP_NONE;
    return (uint32_t)tree->nodes.count - 1;
}

struct visit {
    struct call_tree *tree;
    int side;
    bool out_of_memory;
};

static void add_stack(const struct span *const *open, unsigned depth, int64_t begin_ns,
                      int64_t end_ns, void *opaque)
{
    struct visit *visit = opaque;
    double ns = (double)(end_ns - begin_ns);
    uint32_t at = 0;
    visit->tree->nodes.items[at].ns[visit->side] += ns;
    for (unsigned i = 0; i < depth; i++) {
        at = find_or_add(visit->tree, at, open[i]);
        if (at == MAP_NONE) {
            visit->out_of_memory = true;
            return;
        }
        visit->tree->nodes.items[at].ns[visit->side] += ns;
    }
}

int call_tree_add(struct call_tree *tree, const struct core_timeline *core, int64_t begin_ns,
                  int64_t end_ns, int side)
{
    struct visit visit = {.tree = tree, .side = side};
    if (!core_timeline_traced(core, begin_ns, end_ns))
        return 0;
    if (tree->nodes.count == 0 && array_push(&tree->nodes, (struct call_node){0}) < 0)
        return -1;
    core_timeline_stacks(core, begin_ns, end_ns, add_stack, &visit);
    return visit.out_of_memory ? -1 : 0;
}
