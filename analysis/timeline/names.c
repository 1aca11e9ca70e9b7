// SPDX-License-Identifier: MIT
#include "analysis/timeline/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { LONGEST_NAME = 63 };

int name_table_init(struct name_table *table, struct name_array *names)
{
    *table = (struct name_table){.names = names};
    for (size_t i = 0; i < names->count; i++)
        if (map_add(&table->numbers, hash_text(names->items[i], strlen(names->items[i])), i) < 0)
            return -1;
    return 0;
}

void name_table_fini(struct name_table *table)
{
    map_free(&table->numbers);
}

int name_table_intern(struct name_table *table, const char *text, size_t bytes, uint32_t *number)
{
    char name[LONGEST_NAME + 1];
    size_t length = 0;
    for (; length < bytes && length < LONGEST_NAME && text[length]; length++)
        name[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    name[length] = '\0';
    uint64_t hash = hash_text(name, length);
    *number = map_find(&table->numbers, hash, at, strcmp(table->names->items[at], name) == 0);
    if (*number != MAP_NONE)
        return 0;
    char *copy = table->names->count <= SPAN_NAMES ? strdup(name) : NULL;
    if (!copy || array_push(table->names, copy) < 0) {
        free(copy);
        return -1;
    }
    *number = (uint32_t)table->names->count - 1;
    return map_add(&table->numbers, hash, *number);
}
