// SPDX-License-Identifier: MIT
//
// Interned names: every distinct string once, under a number, so that equal names have equal
// numbers.
#ifndef BASE_NAME_POOL_H
#define BASE_NAME_POOL_H

#include <stddef.h>
#include <stdint.h>

struct name_pool; // grows; a name's number and its string never change
struct name_pool *name_pool_alloc(void);
void name_pool_free(struct name_pool *pool);
// The name's number, or UINT32_MAX when out of memory.
uint32_t name_pool_add(struct name_pool *pool, const char *name, size_t length);
// The same, but UINT32_MAX where the name is not there. Changes nothing.
uint32_t name_pool_find(const struct name_pool *pool, const char *name, size_t length);
const char *name_pool_text(const struct name_pool *pool, uint32_t name);
uint32_t name_pool_count(const struct name_pool *pool);

#endif
