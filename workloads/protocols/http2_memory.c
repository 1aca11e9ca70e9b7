// SPDX-License-Identifier: MIT
#include "workloads/protocols/http2_memory.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT_BYTES = 64 };

struct http2_block {
    struct http2_block *next; // of those that are kept
    size_t units;
    alignas(max_align_t) char bytes[];
};

static struct http2_block *block_of(void *bytes)
{
    return (struct http2_block *)((char *)bytes - offsetof(struct http2_block, bytes));
}

static struct http2_block **kept_of(struct http2_memory *memory, size_t units)
{
    return units <= HTTP2_BLOCK_SIZES ? &memory->kept[units - 1] : NULL;
}

static void *take(size_t bytes, void *argument)
{
    struct http2_memory *memory = argument;
    if (bytes > PTRDIFF_MAX - UNIT_BYTES - sizeof(struct http2_block))
        return NULL;
    const size_t units = bytes ? (bytes + UNIT_BYTES - 1) / UNIT_BYTES : 1;
    struct http2_block **kept = kept_of(memory, units), *block = kept ? *kept : NULL;
    if (block) {
        *kept = block->next;
        return block->bytes;
    }
    block = malloc(sizeof *block + units * UNIT_BYTES);
    if (!block)
        return NULL;
    block->units = units;
    return block->bytes;
}

static void give(void *bytes, void *argument)
{
    struct http2_memory *memory = argument;
    if (!bytes)
        return;
    struct http2_block *block = block_of(bytes), **kept = kept_of(memory, block->units);
    if (!kept) {
        free(block);
        return;
    }
    block->next = *kept;
    *kept = block;
}

static void *take_zeroed(size_t count, size_t bytes, void *argument)
{
    size_t all;
    void *taken = __builtin_mul_overflow(count, bytes, &all) ? NULL : take(all, argument);
    return taken ? memset(taken, 0, all) : NULL;
}

static void *take_more(void *bytes, size_t wanted, void *argument)
{
    const size_t room = bytes ? block_of(bytes)->units * UNIT_BYTES : 0;
    if (bytes && wanted <= room)
        return bytes;
    void *taken = take(wanted, argument);
    if (taken && bytes) {
        memcpy(taken, bytes, room);
        give(bytes, argument);
    }
    return taken;
}

nghttp2_mem http2_memory_use(struct http2_memory *memory)
{
    return (nghttp2_mem){.mem_user_data = memory,
                         .malloc = take,
                         .free = give,
                         .calloc = take_zeroed,
                         .realloc = take_more};
}

void http2_memory_fini(struct http2_memory *memory)
{
    for (size_t i = 0; i < HTTP2_BLOCK_SIZES; i++)
        for (struct http2_block *block; (block = memory->kept[i]);) {
            memory->kept[i] = block->next;
            free(block);
        }
}
