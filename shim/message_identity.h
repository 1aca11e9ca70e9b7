// SPDX-License-Identifier: MIT
//
// What the collector knows of a connection in one process: who it is, and how far its calls can be
// believed. A socket that several processes share has one of these for each.
#ifndef SHIM_MESSAGE_IDENTITY_H
#define SHIM_MESSAGE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/array.h"
#include "shim/ring_reader.h"

struct identity {
    uint64_t instance;
    uint32_t process;
    uint32_t own; // the process's id for it
    uint32_t id;  // the log's; 0: left out
    bool known;   // it has its id
    struct ring_announcement announcement;
    uint64_t until_tsc[2]; // by direction: calls that returned later are not believed
    // Of the calls that were written, by direction: where they begin, plus 1 (0: there were none),
    // where they end, and how many bytes they moved, which is all in between unless some are lost.
    uint64_t first[2], end[2], moved[2];
    uint64_t counted[2];   // how many the shim said it has seen, at a comparison
    uint32_t process_here; // as struct ring_reader
};
struct identity_array ARRAY_OF(struct identity);

static inline int identity_compare(const void *left, const void *right)
{
    const struct identity *a = left, *b = right;
    return order_of(a->process, b->process) ?:
           order_of(a->instance, b->instance) ?:
           order_of(a->own, b->own);
}

// Of identities in that order, the one that a thread means by `own`. NULL: nobody knows.
static inline struct identity *identity_find(const struct identity_array *identities,
                                             const struct ring_reader *ring, uint32_t own)
{
    struct identity key = {.instance = ring->instance, .process = ring->process, .own = own};
    return identities->count == 0
               ? NULL
               : bsearch(&key, identities->items, identities->count, sizeof key, identity_compare);
}

#endif
