// SPDX-License-Identifier: MIT
#include "loadgen/engine/think_queue.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"

int think_queue_make(struct think_queue *queue, uint32_t size, const struct distribution *times,
                     double ticks_per_ns, uint64_t seed)
{
    *queue = (struct think_queue){.items = calloc(size, sizeof(void *)),
                                  .times = times,
                                  .ticks_per_ns = ticks_per_ns,
                                  .seed = seed};
    return queue->items ? 0 : -1;
}

double think_queue_draw(struct think_queue *queue)
{
    return hash_fraction(hash_pair(queue->seed, queue->drawn++));
}

void think_queue_begin(struct think_queue *queue, struct client_connection *connection,
                       uint64_t now, double share)
{
    const double ns = share * distribution_quantile(queue->times, think_queue_draw(queue));
    connection->wake_tsc = now + (uint64_t)(fmax(fmin(ns, 0x1p62), 0) * queue->ticks_per_ns);
    connection->thinks = true;
    think_queue_push(queue, connection);
}

// No item wakes before the one at half its place.
void think_queue_push(struct think_queue *queue, struct client_connection *connection)
{
    uint32_t at = queue->count++;
    for (uint32_t above; at && connection->wake_tsc < queue->items[above = (at - 1) / 2]->wake_tsc;
         at = above)
        queue->items[at] = queue->items[above];
    queue->items[at] = connection;
}

struct client_connection *think_queue_pop(struct think_queue *queue, uint64_t now)
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
    first->thinks = false;
    return first;
}
