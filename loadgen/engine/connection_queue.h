// SPDX-License-Identifier: MIT
//
// A queue of connections that wait for something; each is in it at most once. Zeroed, it has no
// room for any.
#ifndef LOADGEN_ENGINE_CONNECTION_QUEUE_H
#define LOADGEN_ENGINE_CONNECTION_QUEUE_H

#include <stdint.h>
#include <stdlib.h>

struct client_connection;

struct connection_queue {
    struct client_connection **items;
    uint32_t size; // room for all that may wait
    uint32_t first, count;
};

// Returns 0, or -1: out of memory. The caller frees `items`.
static inline int connection_queue_make(struct connection_queue *queue, uint32_t size)
{
    *queue = (struct connection_queue){.items = calloc(size, sizeof(void *)), .size = size};
    return queue->items ? 0 : -1;
}

static inline void connection_queue_push(struct connection_queue *queue,
                                         struct client_connection *connection)
{
    uint32_t place = queue->first + queue->count++;
    queue->items[place < queue->size ? place : place - queue->size] = connection;
}

static inline struct client_connection *connection_queue_pop(struct connection_queue *queue)
{
    struct client_connection *connection = queue->items[queue->first];
    queue->first = queue->first + 1 == queue->size ? 0 : queue->first + 1;
    queue->count--;
    return connection;
}

#endif
