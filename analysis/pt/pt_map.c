// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_map.h"

#include <stdlib.h>

struct pt_map_slot {
    struct pt_map_key key;
    uint32_t value;
    bool used;
};

static bool same(const struct pt_map_key *a, const struct pt_map_key *b)
{
    return a->function == b->function && a->parent == b->parent && a->kind == b->kind &&
           a->known == b->known;
}

static struct pt_map_slot *slot_of(struct pt_map_slot *slots, size_t capacity,
                                   const struct pt_map_key *key)
{
    uint64_t hash = (key->function + key->kind) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ key->parent) * 0xbf58476d1ce4e5b9u;
    size_t i = (size_t)(hash >> 32) & (capacity - 1);
    while (slots[i].used && !same(&slots[i].key, key))
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

static int grow(struct pt_map *map)
{
    size_t capacity = map->capacity ? map->capacity * 2 : 256;
    struct pt_map_slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return -1;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].used)
            *slot_of(slots, capacity, &map->slots[i].key) = map->slots[i];
    free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return 0;
}

uint32_t *pt_map_at(struct pt_map *map, struct pt_map_key key)
{
    if (map->count * 2 >= map->capacity && grow(map) < 0)
        return NULL;
    struct pt_map_slot *slot = slot_of(map->slots, map->capacity, &key);
    if (!slot->used) {
        *slot = (struct pt_map_slot){.key = key, .used = true};
        map->count++;
    }
    return &slot->value;
}

void pt_map_free(struct pt_map *map)
{
    free(map->slots);
    *map = (struct pt_map){0};
}
