// SPDX-License-Identifier: MIT
//
// A hash table from functions (of a caller, where that matters) to small numbers, as the exports
// need it: a name's number, a stack's number.
#ifndef ANALYSIS_PT_PT_MAP_H
#define ANALYSIS_PT_PT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/pt/calls/pt_span.h"
#include "base/array.h"
#include "base/map.h"

struct pt_map_key {
    uint64_t function; // of a task: its number
    uint32_t parent;   // 0 where it does not matter
    uint8_t kind;      // enum pt_span_kind
    bool known;        // function is a key
};

struct pt_map_entry {
    struct pt_map_key key;
    uint32_t value;
};
struct pt_map_entries ARRAY_OF(struct pt_map_entry);

struct pt_map {
    struct pt_map_entries entries;
    struct map positions;
};

// What the span's label depends on, and nothing else.
static inline struct pt_map_key pt_map_key_of(const struct pt_span *span, uint32_t parent)
{
    bool task = span->kind == PT_SPAN_TASK, plain = task || span->kind == PT_SPAN_LOST;
    return (struct pt_map_key){.function = task    ? span->task
                                           : plain ? 0
                                                   : span->function,
                               .parent = parent,
                               .kind = span->kind,
                               .known = !plain && span->function_known};
}

// The number of the key, 0 when it is new: then set it. Valid until the next call; NULL: no memory.
uint32_t *pt_map_at(struct pt_map *map, struct pt_map_key key);
void pt_map_free(struct pt_map *map);

#endif
