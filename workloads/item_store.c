// SPDX-License-Identifier: MIT
#include "workloads/item_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { BUCKETS = 1 << 18 };

struct item {
    struct item *next;
    size_t key_bytes, value_bytes;
    unsigned flags;
    char bytes[]; // the key, then the value
};

struct item_store {
    pthread_mutex_t lock;
    struct item *buckets[BUCKETS];
};

struct item_store *item_store_alloc(void)
{
    struct item_store *store = calloc(1, sizeof *store);
    if (store)
        pthread_mutex_init(&store->lock, NULL);
    return store;
}

// The pointer to that key's item, or where it would be inserted.
static struct item **item_find(struct item_store *store, const char *key, size_t key_bytes)
{
    uint64_t hash = key_bytes;
    for (size_t i = 0; i < key_bytes; i++)
        hash = hash64(hash ^ (unsigned char)key[i]);
    struct item **at = &store->buckets[hash % BUCKETS];
    while (*at && ((*at)->key_bytes != key_bytes || memcmp((*at)->bytes, key, key_bytes) != 0))
        at = &(*at)->next;
    return at;
}

bool item_store_set(struct item_store *store, const char *key, size_t key_bytes, const char *value,
                    size_t value_bytes, unsigned flags)
{
    struct item *item = malloc(sizeof *item + key_bytes + value_bytes);
    if (!item)
        return false;
    *item = (struct item){NULL, key_bytes, value_bytes, flags};
    memcpy(item->bytes, key, key_bytes);
    memcpy(item->bytes + key_bytes, value, value_bytes);
    pthread_mutex_lock(&store->lock);
    struct item **at = item_find(store, key, key_bytes), *old = *at;
    item->next = old ? old->next : NULL;
    *at = item;
    pthread_mutex_unlock(&store->lock);
    free(old);
    return true;
}

long item_store_get(struct item_store *store, const char *key, size_t key_bytes, char *out,
                    size_t out_bytes, unsigned *flags)
{
    long bytes = -1;
    pthread_mutex_lock(&store->lock);
    const struct item *item = *item_find(store, key, key_bytes);
    if (item) {
        bytes = (long)item->value_bytes;
        *flags = item->flags;
        memcpy(out, item->bytes + key_bytes,
               item->value_bytes < out_bytes ? item->value_bytes : out_bytes);
    }
    pthread_mutex_unlock(&store->lock);
    return bytes;
}
