// SPDX-License-Identifier: MIT
//
// Which server has which keys, where they are many: the nodes of a Redis Cluster and the owner of
// each slot, or the servers that were a sentinel's master, and the one that is. All threads read
// it while they load, without locks. A node never goes and never changes its place here; the thread
// that watches (loadgen/client/node_watch.h) adds those that appear. Owners are changed by it, and
// by each load thread that is told of another one.
#ifndef LOADGEN_CLIENT_NODE_MAP_H
#define LOADGEN_CLIENT_NODE_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loadgen/client/server_address.h"
#include "workloads/protocols/redis_cluster.h"

enum { NODES_MOST = 256, NODE_NONE = UINT16_MAX };

struct node_map {
    bool by_slot;             // false: all keys are at the owner of slot 0
    int wake;                 // eventfd: written when the map is to be read anew
    atomic_bool wanted;       // it has been written, and not been read yet
    _Atomic uint32_t changes; // grows with each change of an owner
    _Atomic uint32_t count;
    _Atomic uint16_t owners[CLUSTER_SLOTS]; // NODE_NONE: nobody
    struct server_address nodes[NODES_MOST];
};

static inline uint32_t node_map_count(const struct node_map *map)
{
    return atomic_load_explicit(&map->count, memory_order_acquire);
}

static inline uint16_t node_map_owner(const struct node_map *map, unsigned slot)
{
    return atomic_load_explicit(&map->owners[slot], memory_order_relaxed);
}

static inline uint32_t node_map_changes(const struct node_map *map)
{
    return atomic_load_explicit(&map->changes, memory_order_acquire);
}

// An empty map, all slots nobody's; wake is -1.
void node_map_init(struct node_map *map, bool by_slot);

// The node at that address, or NODE_NONE.
uint32_t node_map_find(const struct node_map *map, const char *host, uint16_t port);

// From now on that node owns the slot.
void node_map_move(struct node_map *map, unsigned slot, uint32_t node);

// Asks for the map to be read anew, soon; may be called as often as one likes.
void node_map_want(struct node_map *map);

// The address of a range's node, looked up. ERROR_INPUT: there is none.
int node_map_place(const struct cluster_range *range, struct server_address *place,
                   struct error *err);

// Takes in what was read. One thread at a time; looks up the names of nodes that are new. Slots
// that are in no range keep their owners: whoever asks those is told better. ERROR_INPUT: a name
// that is not known; ERROR_FAILED: too many nodes. What came before is taken in.
int node_map_take(struct node_map *map, const struct cluster_ranges *ranges, struct error *err);

// How many slots nobody owns.
unsigned node_map_unserved(const struct node_map *map);

#endif
