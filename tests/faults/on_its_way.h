// SPDX-License-Identifier: MIT
//
// Which messages a fault of the network can have held up beyond its end: those that were on their
// way meanwhile, and on their connections those that were sent before all of these had been read,
// for TCP gives nothing out of order. What is late for another reason soon after a fault is none.
#ifndef TESTS_FAULTS_ON_ITS_WAY_H
#define TESTS_FAULTS_ON_ITS_WAY_H

#include <stdbool.h>
#include <stdlib.h>

#include "analysis/lifetime/lifetime.h"
#include "base/array.h"

struct fault_time {
    int64_t begin_ns, end_ns;
};

static inline int compare_on_connection(const void *left, const void *right)
{
    const struct lifetime *a = *(const struct lifetime *const *)left;
    const struct lifetime *b = *(const struct lifetime *const *)right;
    return order_of(a->connection, b->connection) ?:
           order_of(a->stamp_ns[STAMP_SEND], b->stamp_ns[STAMP_SEND]) ?: order_of(a, b);
}

static inline bool meets_any(const struct lifetime *life, const struct fault_time *faults,
                             size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (faults[i].begin_ns < life->stamp_ns[STAMP_REPLY_READ] &&
            life->stamp_ns[STAMP_SEND] < faults[i].end_ns)
            return true;
    return false;
}

// Of the whole lifetimes among `count`, all of one load: for each, whether it is one of these. To
// be freed; NULL: no memory.
static inline bool *find_on_their_way(const struct lifetime *lives, size_t count,
                                      const struct fault_time *faults, size_t fault_count)
{
    bool *held = calloc(count + 1, sizeof *held);
    const struct lifetime **order = calloc(count + 1, sizeof *order);
    size_t whole = 0;
    int64_t until_ns = 0;
    if (!held || !order) {
        free(held);
        free(order);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        if (lives[i].state == LIFETIME_WHOLE)
            order[whole++] = &lives[i];
    if (whole)
        qsort(order, whole, sizeof *order, compare_on_connection);
    for (size_t i = 0; i < whole; i++) {
        if (i == 0 || order[i]->connection != order[i - 1]->connection)
            until_ns = INT64_MIN;
        if (!meets_any(order[i], faults, fault_count) && order[i]->stamp_ns[STAMP_SEND] >= until_ns)
            continue;
        held[order[i] - lives] = true;
        if (order[i]->stamp_ns[STAMP_REPLY_READ] > until_ns)
            until_ns = order[i]->stamp_ns[STAMP_REPLY_READ];
    }
    free(order);
    return held;
}

#endif
