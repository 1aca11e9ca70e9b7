// SPDX-License-Identifier: MIT
//
// Typed growable arrays with checked arithmetic. An array owns its items' memory, not what the
// items point to. A zeroed struct is an empty array.
//
//     struct spans ARRAY_OF(struct span);
//     struct spans spans = {0};
//     if (array_push(&spans, one) < 0) ...        // -1: out of memory, the array is as before
//     array_free(&spans);
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_sort.h"

#define ARRAY_OF(type)                                                                             \
    {                                                                                              \
        type *items;                                                                               \
        size_t count;                                                                              \
        size_t capacity;                                                                           \
    }

// Makes room for `wanted` items in all. Returns 0, or -1 (overflow or no memory) with the array
// untouched.
static inline int array_reserve_raw(void **items, size_t *capacity, size_t wanted, size_t size)
{
    if (wanted <= *capacity)
        return 0;
    size_t grown = *capacity < 16 ? 16 : *capacity;
    while (grown < wanted) {
        if (__builtin_mul_overflow(grown, (size_t)2, &grown))
            return -1;
    }
    size_t bytes;
    if (__builtin_mul_overflow(grown, size, &bytes))
        return -1;
    void *moved = realloc(*items, bytes);
    if (!moved)
        return -1;
    *items = moved;
    *capacity = grown;
    return 0;
}

#define array_reserve(array, wanted)                                                               \
    ({                                                                                             \
        void *items_ = (array)->items;                                                             \
        int result_ =                                                                              \
            array_reserve_raw(&items_, &(array)->capacity, (wanted), sizeof *(array)->items);      \
        (array)->items = items_;                                                                   \
        result_;                                                                                   \
    })

#define array_push(array, ...)                                                                     \
    ({                                                                                             \
        int pushed_ = array_reserve((array), (array)->count + 1);                                  \
        if (pushed_ == 0) {                                                                        \
            (array)->items[(array)->count] = (__VA_ARGS__);                                        \
            (array)->count++;                                                                      \
        }                                                                                          \
        pushed_;                                                                                   \
    })

// Binary search. Where the items from index `from` up to `to` (not included) begin with those for
// which `before` holds: the index of the first for which it does not hold, or `to`. `before` is an
// expression on `at`, a name of the caller's choice.
//
//     size_t next = array_bound(0, spans.count, at, spans.items[at].begin_ns <= time_ns);
#define array_bound(from, to, at, before)                                                          \
    ({                                                                                             \
        size_t low_ = (from), high_ = (to);                                                        \
        while (low_ < high_) {                                                                     \
            size_t at = low_ + (high_ - low_) / 2;                                                 \
            if (before)                                                                            \
                low_ = at + 1;                                                                     \
            else                                                                                   \
                high_ = at;                                                                        \
        }                                                                                          \
        low_;                                                                                      \
    })

// Sorts by a comparison as qsort's (array_sort.h).
#define array_sort(array, compare)                                                                 \
    array_sort_raw((array)->items, (array)->count, sizeof *(array)->items, (compare))

// Below, equal, above as -1, 0, 1: what a comparison for qsort returns.
#define order_of(a, b) (((a) > (b)) - ((a) < (b)))

#define array_free(array)                                                                          \
    do {                                                                                           \
        free((array)->items);                                                                      \
        (array)->items = NULL;                                                                     \
        (array)->count = (array)->capacity = 0;                                                    \
    } while (0)

#endif
