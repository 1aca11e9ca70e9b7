// SPDX-License-Identifier: MIT
//
// The laboratory server's memory: keys and values in a hash table behind one lock. Simple, as its
// service time is drawn, not earned.
#ifndef WORKLOADS_ITEM_STORE_H
#define WORKLOADS_ITEM_STORE_H

#include <stdbool.h>
#include <stddef.h>

struct item_store;

// NULL: out of memory.
struct item_store *item_store_alloc(void);
void item_store_free(struct item_store *store);

// Keeps a copy. False: out of memory, and the key holds what it held.
bool item_store_set(struct item_store *store, const char *key, size_t key_bytes, const char *value,
                    size_t value_bytes, unsigned flags);

// Copies the value out, at most out_bytes of it. Returns its whole length, or -1: no such key.
long item_store_get(struct item_store *store, const char *key, size_t key_bytes, char *out,
                    size_t out_bytes, unsigned *flags);

#endif
