// SPDX-License-Identifier: MIT
#include "loadgen/client/node_map.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void node_map_init(struct node_map *map, bool by_slot)
{
    memset(map, 0, sizeof *map);
    map->by_slot = by_slot;
    map->wake = -1;
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++)
        atomic_init(&map->owners[slot], NODE_NONE);
}

uint32_t node_map_find(const struct node_map *map, const char *host, uint16_t port)
{
    const uint32_t count = node_map_count(map);
    for (uint32_t i = 0; i < count; i++)
        if (map->nodes[i].port == port && strcmp(map->nodes[i].host, host) == 0)
            return i;
    return NODE_NONE;
}

void node_map_move(struct node_map *map, unsigned slot, uint32_t node)
{
    if (atomic_exchange_explicit(&map->owners[slot], (uint16_t)node, memory_order_relaxed) != node)
        atomic_fetch_add_explicit(&map->changes, 1, memory_order_release);
}

void node_map_want(struct node_map *map)
{
    const uint64_t one = 1;
    if (atomic_load_explicit(&map->wanted, memory_order_relaxed) ||
        atomic_exchange(&map->wanted, true) || map->wake < 0)
        return;
    ssize_t written = write(map->wake, &one, sizeof one);
    (void)written; // the counter cannot overflow
}

int node_map_place(const struct cluster_range *range, struct server_address *place,
                   struct error *err)
{
    char text[CLUSTER_HOST_BYTES + 20];
    snprintf(text, sizeof text, strchr(range->host, ':') ? "[%s]:%u" : "%s:%u", range->host,
             range->port);
    int status = server_address_parse(text, place, err);
    return status < 0 ? status : server_address_reach(place, err);
}

// NODE_NONE with *err: it cannot be one.
static uint32_t add_node(struct node_map *map, const struct cluster_range *range, struct error *err)
{
    const uint32_t count = node_map_count(map);
    if (count == NODES_MOST) {
        error_set(err, ERROR_FAILED, "there are more than %s nodes", TEXT_COUNT(NODES_MOST));
        return NODE_NONE;
    }
    if (node_map_place(range, &map->nodes[count], err) < 0)
        return NODE_NONE;
    atomic_store_explicit(&map->count, count + 1, memory_order_release);
    return count;
}

int node_map_take(struct node_map *map, const struct cluster_ranges *ranges, struct error *err)
{
    for (size_t i = 0; i < ranges->count; i++) {
        const struct cluster_range *range = &ranges->items[i];
        uint32_t node = node_map_find(map, range->host, range->port);
        if (node == NODE_NONE)
            node = add_node(map, range, err);
        if (node == NODE_NONE)
            return -(int)err->kind;
        for (unsigned slot = range->first; slot <= range->last; slot++)
            node_map_move(map, slot, node);
    }
    return 0;
}

unsigned node_map_unserved(const struct node_map *map)
{
    unsigned unserved = 0;
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++)
        unserved += node_map_owner(map, slot) == NODE_NONE;
    return unserved;
}
