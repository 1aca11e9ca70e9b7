// SPDX-License-Identifier: MIT
//
// The connections of a closed loop whose users think: each until its wake_tsc, the soonest first.
// Each is in it at most once.
#ifndef LOADGEN_ENGINE_THINK_QUEUE_H
#define LOADGEN_ENGINE_THINK_QUEUE_H

#include <stdint.h>

#include "loadgen/client/client_state.h"
#include "workloads/distribution.h"

struct think_queue {
    struct client_connection **items; // a binary heap
    uint32_t count;
    const struct distribution *times; // in ns; NULL: nobody thinks
    double ticks_per_ns;
    uint64_t seed, drawn; // a draw is a function of both: the same load draws the same
};

// Room for so many connections. Returns 0, or -1: out of memory. The caller frees `items`.
int think_queue_make(struct think_queue *queue, uint32_t size, const struct distribution *times,
                     double ticks_per_ns, uint64_t seed);

// Uniform in [0, 1).
double think_queue_draw(struct think_queue *queue);

// The connection's user thinks from then on; for so much of the time that is drawn.
void think_queue_begin(struct think_queue *queue, struct client_connection *connection,
                       uint64_t now, double share);

void think_queue_push(struct think_queue *queue, struct client_connection *connection);

// The soonest, if it is time, which thinks no more; else NULL.
struct client_connection *think_queue_pop(struct think_queue *queue, uint64_t now);

#endif
