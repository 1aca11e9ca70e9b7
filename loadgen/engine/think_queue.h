// SPDX-License-Identifier: MIT
//
// The connections of a closed loop whose users think: each until its wake_tsc, the soonest first. A
// binary heap; each connection is in it at most once. Zeroed, it has no room for any.
#ifndef LOADGEN_ENGINE_THINK_QUEUE_H
#define LOADGEN_ENGINE_THINK_QUEUE_H

#include <stdint.h>
#include <stdlib.h>

#include "loadgen/client/client_state.h"

struct think_queue {
    struct client_connection **items; // none wakes before the one at half its place
    uint32_t count;
};

// Returns 0, or -1: out of memory. The caller frees `items`.
static inline int think_queue_make(struct think_queue *queue, uint32_t size)
{
    *queue = (struct think_queue){.items = calloc(size, sizeof(void *))};
    return queue->items ? 0 : -1;
}

static inline void think_queue_push(struct think_queue *queue, struct client_connection *connection)
{
    uint32_t at = queue->count++;
    for (uint32_t above; at && connection->wake_tsc < queue->items[above = (at - 1) / 2]->wake_tsc;
         at = above)
        queue->items[at] = queue->items[above];
    queue->items[at] = connection;
}

// The soonest, if it is time; else NULL.
static inline struct client_connection *think_queue_pop(struct think_queue *queue, uint64_t now)
{
    if (!queue->count || queue->items[0]->wake_tsc > now)
        return NULL;
    struct client_connection *first = queue->items[0], *last = queue->items[--queue->count];
    uint32_t at = 0;
    for (uint32_t below; (below = 2 * at + 1) < queue->count; at = below) {
        below += below + 1 < queue->count &&
                 queue->items[below + 1]->wake_tsc < queue->items[below]->wake_tsc;
        if (last->wake_tsc <= queue->items[below]->wake_tsc)
            break;
        queue->items[at] = queue->items[below];
    }
    queue->items[at] = last;
    return first;
}

#endif
