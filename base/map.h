// SPDX-License-Identifier: MIT
//
// A hash map from keys to the positions of the items that hold them: the items are in an array of
// the caller's (base/array.h), the map finds them again. Open addressing, never more than half
// full; entries are never removed. A zeroed struct is an empty map.
//
//     uint64_t hash = hash_pair(thread, core);
//     uint32_t found = map_find(&map, hash, at, items.items[at].thread == thread &&
//                                                   items.items[at].core == core);
//     if (found == MAP_NONE && (array_push(&items, one) < 0 ||
//                               map_add(&map, hash, found = (uint32_t)items.count - 1) < 0)) ...
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define MAP_NONE UINT32_MAX

struct map_slot {
    uint32_t hash;     // compared before the key is
    uint32_t position; // plus 1; 0: free
};

struct map {
    struct map_slot *slots;
    size_t slot_count; // 0, or a power of two
    size_t count;
};

static inline uint32_t map_fold(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

static inline void map_place(struct map *map, struct map_slot slot)
{
    size_t place = slot.hash & (map->slot_count - 1);
    while (map->slots[place].position)
        place = (place + 1) & (map->slot_count - 1);
    map->slots[place] = slot;
}

// The position of the item with that hash for which `same` holds, an expression on `at` (a name of
// the caller's choice); or MAP_NONE.
#define map_find(map, wanted, at, same)                                                            \
    ({                                                                                             \
        uint32_t hash_ = map_fold(wanted), found_ = MAP_NONE;                                      \
        size_t mask_ = (map)->slot_count - 1, place_ = hash_ & mask_;                              \
        for (; (map)->count && (map)->slots[place_].position; place_ = (place_ + 1) & mask_) {     \
            uint32_t at = (map)->slots[place_].position - 1;                                       \
            if ((map)->slots[place_].hash == hash_ && (same)) {                                    \
                found_ = at;                                                                       \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
        found_;                                                                                    \
    })

// Adds an item that is not in the map yet. Returns 0, or -1 (no memory, or a position beyond
// MAP_NONE - 1) with the map unchanged.
static inline int map_add(struct map *map, uint64_t hash, size_t position)
{
    if (position >= MAP_NONE)
        return -1;
    if (2 * (map->count + 1) > map->slot_count) {
        struct map larger = {.slot_count = map->slot_count ? 2 * map->slot_count : 64,
                             .count = map->count};
        larger.slots = (struct map_slot *)calloc(larger.slot_count, sizeof *larger.slots);
        if (!larger.slots)
            return -1;
        for (size_t i = 0; i < map->slot_count; i++)
            if (map->slots[i].position)
                map_place(&larger, map->slots[i]);
        free(map->slots);
        *map = larger;
    }
    map_place(map, (struct map_slot){.hash = map_fold(hash), .position = (uint32_t)position + 1});
    map->count++;
    return 0;
}

static inline void map_free(struct map *map)
{
    free(map->slots);
    *map = (struct map){0};
}

#endif
