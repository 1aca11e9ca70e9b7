// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_map.h"

#include "base/hash.h"

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
