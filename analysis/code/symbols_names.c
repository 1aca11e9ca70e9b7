// SPDX-License-Identifier: MIT
//
// Interned names: every distinct string once, with a number; and C++ names made readable.
#include "analysis/code/symbols_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct name_block {
    struct name_block *next;
    size_t used, capacity;
    char text[];
};

struct text_array ARRAY_OF(const char *);

struct name_pool {
    struct text_array names; // by number
    struct name_block *blocks;
    uint32_t *slots;   // hash table of numbers + 1; 0: empty
    size_t slot_count; // a power of two, more than half of it empty
};

struct name_pool *name_pool_alloc(void)
{
    struct name_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->slot_count = 1024;
    pool->slots = calloc(pool->slot_count, sizeof *pool->slots);
    if (!pool->slots) {
        free(pool);
        return NULL;
    }
    return pool;
}

void name_pool_free(struct name_pool *pool)
{
    if (!pool)
        return;
    while (pool->blocks) {
        struct name_block *next = pool->blocks->next;
        free(pool->blocks);
        pool->blocks = next;
    }
    array_free(&pool->names);
    free(pool->slots);
    free(pool);
}

static uint64_t hash_of(const char *name, size_t length) // FNV-1a
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)name[i]) * 0x100000001b3;
    return hash ^ hash >> 32;
}

// The slot that holds the name, or the empty one where it belongs.
static uint32_t *slot_of(const struct name_pool *pool, const char *name, size_t length)
{
    size_t mask = pool->slot_count - 1;
    for (size_t at = (size_t)hash_of(name, length) & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &pool->slots[at];
        if (!*slot)
            return slot;
        const char *known = pool->names.items[*slot - 1];
        if (strncmp(known, name, length) == 0 && known[length] == '\0')
            return slot;
    }
}

static int grow(struct name_pool *pool)
{
    uint32_t *before = pool->slots;
    uint32_t *slots = calloc(pool->slot_count * 2, sizeof *slots);
    if (!slots)
        return -1;
    pool->slots = slots;
    pool->slot_count *= 2;
    for (size_t i = 0; i < pool->names.count; i++)
        *slot_of(pool, pool->names.items[i], strlen(pool->names.items[i])) = (uint32_t)i + 1;
    free(before);
    return 0;
}

static char *keep_text(struct name_pool *pool, const char *name, size_t length)
{
    enum { BLOCK_BYTES = 1 << 16 };
    struct name_block *block = pool->blocks;
    if (!block || block->capacity - block->used < length + 1) {
        size_t capacity = length + 1 > BLOCK_BYTES ? length + 1 : BLOCK_BYTES;
        block = malloc(sizeof *block + capacity);
        if (!block)
            return NULL;
        *block = (struct name_block){.next = pool->blocks, .capacity = capacity};
        pool->blocks = block;
    }
    char *text = block->text + block->used;
    memcpy(text, name, length);
    text[length] = '\0';
    block->used += length + 1;
    return text;
}

uint32_t name_pool_add(struct name_pool *pool, const char *name, size_t length)
{
    length = strnlen(name, length);
    if (pool->names.count >= pool->slot_count / 2 &&
        (pool->names.count >= UINT32_MAX - 1 || grow(pool) < 0))
        return UINT32_MAX;
    uint32_t *slot = slot_of(pool, name, length);
    if (*slot)
        return *slot - 1;
    const char *text = keep_text(pool, name, length);
    if (!text || array_push(&pool->names, text) < 0)
        return UINT32_MAX;
    *slot = (uint32_t)pool->names.count;
    return *slot - 1;
}

uint32_t name_pool_find(const struct name_pool *pool, const char *name, size_t length)
{
    uint32_t slot = *slot_of(pool, name, length);
    return slot ? slot - 1 : UINT32_MAX;
}

const char *name_pool_text(const struct name_pool *pool, uint32_t name)
{
    return name < pool->names.count ? pool->names.items[name] : "[unknown]";
}

uint32_t name_pool_count(const struct name_pool *pool)
{
    return (uint32_t)pool->names.count;
}

// Of the C++ run-time library (Itanium C++ ABI §3.4).
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

char *symbol_demangle(const char *name)
{
    enum { LONGEST = 4096 }; // longer ones cost more than they tell
    if (strncmp(name, "_Z", 2) == 0 && strnlen(name, LONGEST) < LONGEST) {
        int status = 0;
        char *readable = __cxa_demangle(name, NULL, NULL, &status);
        if (readable && status == 0)
            return readable;
        free(readable);
    }
    return strdup(name);
}
