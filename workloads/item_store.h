// SPDX-License-Identifier: MIT
//
// The laboratory server's memory: keys and values in a hash table with one lock. It can be simple,
// since the service time is drawn and does not depend on it.
#ifndef WORKLOADS_ITEM_STORE_H
#define WORKLOADS_ITEM_STORE_H

#include <stdbool.h>
#include <stddef.h>

struct item_store;

// NULL: out of memory. It lives as long as the server: there is no call to free it.
struct item_store *item_store_alloc(void);

// Stores a copy. False: out of memory, and the key keeps its old value.
bool item_store_set(struct item_store *store, const char *key, size_t key_bytes, const char *value,
                    size_t value_bytes, unsigned flags);

// Copies the value out, at most out_bytes of it. Returns its whole length, or -1: no such key.
long item_store_get(struct item_store *store, const char *key, size_t key_bytes, char *out,
                    size_t out_bytes, unsigned *flags);

#endif
