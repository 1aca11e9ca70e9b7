// SPDX-License-Identifier: MIT
#include "base/name_pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"

struct name_block {
    struct name_block *next;
    size_t used, capacity;
    char text[];
};

struct text_array ARRAY_OF(const char *);

struct name_pool {
    struct text_array names; // by number
    struct name_block *blocks;
    struct map numbers;
};

struct name_pool *name_pool_alloc(void)
{
    return calloc(1, sizeof(struct name_pool));
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
    map_free(&pool->numbers);
    free(pool);
}

static uint32_t pool_find(const struct name_pool *pool, const char *name, size_t length,
                          uint64_t hash)
{
    return map_find(&pool->numbers, hash, at,
                    strncmp(pool->names.items[at], name, length) == 0 &&
                        pool->names.items[at][length] == '\0');
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
    uint64_t hash = hash_text(name, length);
    uint32_t number = pool_find(pool, name, length, hash);
    if (number != MAP_NONE)
        return number;
    const char *text = keep_text(pool, name, length);
    if (!text || array_push(&pool->names, text) < 0)
        return UINT32_MAX;
    number = (uint32_t)pool->names.count - 1;
    if (map_add(&pool->numbers, hash, number) < 0) {
        pool->names.count--;
        return UINT32_MAX;
    }
    return number;
}

uint32_t name_pool_find(const struct name_pool *pool, const char *name, size_t length)
{
    return pool_find(pool, name, length, hash_text(name, length));
}

const char *name_pool_text(const struct name_pool *pool, uint32_t name)
{
    return name < pool->names.count ? pool->names.items[name] : "[unknown]";
}

uint32_t name_pool_count(const struct name_pool *pool)
{
    return (uint32_t)pool->names.count;
}
