// SPDX-License-Identifier: MIT
//
// Memory for tables that grow to megabytes, in few page faults: it lies in huge pages (2 MiB) where
// the kernel gives any. On a virtual machine one of these may cost as little as twenty small ones,
// of which it is 512. What is small, and everything where there are no huge pages, comes from
// malloc.
//
// A room belongs to one thread at a time. A zeroed struct is an empty room; NULL is one in which
// everything comes from malloc.
#ifndef BASE_ROOM_H
#define BASE_ROOM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"

enum {
    // A table of that many bytes opens the room; there is room for less then, too. Who needs no
    // such table is better off with a few small pages.
    ROOM_OPENS_BYTES = 256 << 10,
    ROOM_LEAST_BYTES = 16 << 10,
    ROOM_PARTS = 32,
    ROOM_SPARES = 32,
};

struct room {
    struct room_lists { // made when it opens: who needs no room has no page of them
        struct room_part {
            char *begin;
            size_t bytes, used;
        } parts[ROOM_PARTS];
        struct room_spare { // what was given back
            char *begin;
            size_t bytes;
        } spares[ROOM_SPARES];
    } * lists;
    unsigned part_count, spare_count;
    bool lacks; // huge pages
    bool early; // set by who knows that its tables will grow: opens with the first of
                // ROOM_LEAST_BYTES
};

// As realloc: `block` has `bytes` bytes, or is NULL; it becomes `wanted` long, and may move. What
// is new is not zeroed. Returns NULL without memory, with the block as it was.
void *room_resize(struct room *room, void *block, size_t bytes, size_t wanted);

// Gives a block back; NULL is none.
void room_free(struct room *room, void *block, size_t bytes);

// Ends the room. Blocks that come from malloc are not freed, all others are.
void room_fini(struct room *room);

// As array_reserve_raw.
int room_reserve_raw(struct room *room, void **items, size_t *capacity, size_t wanted, size_t size);

// As array_reserve, array_push and array_free, for an array that has only ever grown in that room.
#define room_reserve(room, array, wanted)                                                          \
    ({                                                                                             \
        size_t wanted_ = (wanted);                                                                 \
        void *items_ = (array)->items;                                                             \
        int reserved_ = wanted_ <= (array)->capacity                                               \
                            ? 0                                                                    \
                            : room_reserve_raw((room), &items_, &(array)->capacity, wanted_,       \
                                               sizeof *(array)->items);                            \
        (array)->items = items_;                                                                   \
        reserved_;                                                                                 \
    })

#define room_push(room, array, ...)                                                                \
    ({                                                                                             \
        int pushed_ = room_reserve((room), (array), (array)->count + 1);                           \
        if (pushed_ == 0) {                                                                        \
            (array)->items[(array)->count] = (__VA_ARGS__);                                        \
            (array)->count++;                                                                      \
        }                                                                                          \
        pushed_;                                                                                   \
    })

#define room_free_array(room, array)                                                               \
    do {                                                                                           \
        room_free((room), (array)->items, (array)->capacity * sizeof *(array)->items);             \
        (array)->items = NULL;                                                                     \
        (array)->count = (array)->capacity = 0;                                                    \
    } while (0)

#endif
