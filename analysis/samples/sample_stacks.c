// SPDX-License-Identifier: MIT
#include "analysis/samples/sample_stacks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

// The child of that name, which is made where there is none; UINT32_MAX: no memory.
static uint32_t child_of(struct sample_stacks *stacks, uint32_t parent, const char *text)
{
    uint32_t name = name_pool_add(stacks->names, text, strlen(text));
    uint64_t hash = hash_pair(parent, name);
    uint32_t found =
        map_find(&stacks->children, hash, at,
                 stacks->nodes.items[at].parent == parent && stacks->nodes.items[at].name == name);
    if (name == UINT32_MAX || found != MAP_NONE)
        return name == UINT32_MAX ? UINT32_MAX : found;
    found = (uint32_t)stacks->nodes.count;
    if (array_push(&stacks->nodes, ((struct stack_node){.parent = parent, .name = name})) < 0 ||
        map_add(&stacks->children, hash, found) < 0)
        return UINT32_MAX;
    return found;
}

// Where the nodes of a tree that is being added are among these.
static uint32_t *numbers_alloc(struct sample_stacks *stacks, size_t count)
{
    uint32_t *numbers = calloc(count + 1, sizeof *numbers);
    if (!stacks->names)
        stacks->names = name_pool_alloc();
    bool has_root = stacks->nodes.count > 0 || count == 0 ||
                    array_push(&stacks->nodes, (struct stack_node){0}) == 0;
    if (numbers && stacks->names && has_root)
        return numbers;
    free(numbers);
    return NULL;
}

// The first node is the root, which the others have already.
static int add_node(struct sample_stacks *stacks, unsigned side, uint32_t *numbers, size_t node,
                    uint32_t parent, const char *name, uint64_t total)
{
    if (node > 0)
        numbers[node] = child_of(stacks, numbers[parent], name);
    if (numbers[node] == UINT32_MAX)
        return -1;
    stacks->nodes.items[numbers[node]].total[side] += total;
    return 0;
}

int sample_stacks_add(struct sample_stacks *stacks, unsigned side,
                      const struct sample_profile *profile)
{
    uint32_t *numbers = numbers_alloc(stacks, profile->nodes.count);
    int result = numbers ? 0 : -1;
    for (size_t i = 0; result == 0 && i < profile->nodes.count; i++) {
        const struct sample_node *node = &profile->nodes.items[i];
        result = add_node(stacks, side, numbers, i, node->parent,
                          i ? profile->names.items[node->name] : NULL, node->total);
    }
    free(numbers);
    return result;
}

int sample_stacks_join(struct sample_stacks *stacks, unsigned side,
                       const struct sample_stacks *others)
{
    uint32_t *numbers = numbers_alloc(stacks, others->nodes.count);
    int result = numbers ? 0 : -1;
    for (size_t i = 0; result == 0 && i < others->nodes.count; i++) {
        const struct stack_node *node = &others->nodes.items[i];
        result = add_node(stacks, side, numbers, i, node->parent,
                          i ? name_pool_text(others->names, node->name) : NULL, node->total[0]);
    }
    free(numbers);
    return result;
}

void sample_stacks_free(struct sample_stacks *stacks)
{
    array_free(&stacks->nodes);
    name_pool_free(stacks->names);
    map_free(&stacks->children);
    *stacks = (struct sample_stacks){0};
}
