// SPDX-License-Identifier: MIT
#include "analysis/pt/calls/pt_span.h"

#include "base/hash.h"
#include "base/text.h"

#include <stdbool.h>

// A span's place in the tree, as indices into the spans.
struct pt_link {
    uint32_t parent, first_child, next_sibling;
};
enum { NONE = UINT32_MAX };

static bool span_encloses(const struct pt_span *outer, const struct pt_span *inner)
{
    return outer->kind != PT_SPAN_LOST && outer->level < inner->level &&
           outer->begin <= inner->begin;
}

// Read backwards, a span comes before those inside it: the first one that encloses is the parent,
// and spans passed on the way cannot enclose one that ended still earlier. Times alone are not
// enough, since many spans are too short for the trace's clock. Returns the first root.
static uint32_t link_spans(struct pt_order *order)
{
    struct pt_link *links = order->links.items;
    const struct pt_span *spans = order->spans.items;
    uint32_t open = NONE, first_root = NONE;
    for (uint32_t i = (uint32_t)order->spans.count; i-- > 0;) {
        while (open != NONE && !span_encloses(&spans[open], &spans[i]))
            open = links[open].parent;
        uint32_t *first = open == NONE ? &first_root : &links[open].first_child;
        links[i] = (struct pt_link){.parent = open, .first_child = NONE, .next_sibling = *first};
        *first = i;
        open = i;
    }
    return first_root;
}

static void walk_tree(struct pt_order *order, uint32_t at)
{
    const struct pt_link *links = order->links.items;
    uint32_t depth = 0;
    size_t count = 0;
    while (at != NONE) {
        order->nested.items[count++] = (struct pt_nested_span){order->spans.items[at], depth};
        if (links[at].first_child != NONE) {
            at = links[at].first_child;
            depth++;
            continue;
        }
        while (at != NONE && links[at].next_sibling == NONE) {
            at = links[at].parent;
            depth--;
        }
        if (at != NONE)
            at = links[at].next_sibling;
    }
}

static int order_deliver(struct pt_order *order, struct error *err)
{
    size_t count = order->spans.count;
    if (count == 0)
        return 0;
    if (count >= NONE || array_reserve(&order->links, count) < 0 ||
        array_reserve(&order->nested, count) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for the %s spans of one run of a task",
                         TEXT_COUNT(count));
    walk_tree(order, link_spans(order));
    order->spans.count = 0;
    return order->sink(order->context, order->nested.items, count, err);
}

int pt_order_take(void *context, const struct pt_span *span, struct error *err)
{
    struct pt_order *order = context;
    if (array_push(&order->spans, *span) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for the %s spans of one run of a task",
                         TEXT_COUNT(order->spans.count));
    return span->kind == PT_SPAN_TASK ? order_deliver(order, err) : 0;
}

int pt_order_finish(struct pt_order *order, struct error *err)
{
    return order_deliver(order, err);
}

void pt_order_free(struct pt_order *order)
{
    array_free(&order->spans);
    array_free(&order->links);
    array_free(&order->nested);
}

// --- numbers for names ---------------------------------------------------------------------------
// A hash table from functions (of a caller, where that matters) to small numbers, as the exports
// need it: a name's number, a stack's number.

static bool map_keys_equal(const struct pt_map_key *a, const struct pt_map_key *b)
{
    return a->function == b->function && a->parent == b->parent && a->kind == b->kind &&
           a->known == b->known;
}

uint32_t *pt_map_at(struct pt_map *map, struct pt_map_key key)
{
    uint64_t hash = hash_pair(key.function + key.kind, key.parent);
    uint32_t found =
        map_find(&map->positions, hash, at, map_keys_equal(&map->entries.items[at].key, &key));
    if (found == MAP_NONE) {
        if (array_push(&map->entries, (struct pt_map_entry){.key = key}) < 0 ||
            map_add(&map->positions, hash, map->entries.count - 1) < 0)
            return NULL;
        found = (uint32_t)map->entries.count - 1;
    }
    return &map->entries.items[found].value;
}

void pt_map_free(struct pt_map *map)
{
    array_free(&map->entries);
    map_free(&map->positions);
}
