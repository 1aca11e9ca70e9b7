// SPDX-License-Identifier: MIT
#include "analysis/timeline/names.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 63, FIRST_SLOTS = 256 };

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u; // FNV-1a
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 16777619u;
    return hash;
}

static void place(struct name_table *table, uint32_t number)
{
    size_t slot = hash_of(table->names->items[number]) & (table->slot_count - 1);
    while (table->slots[slot])
        slot = (slot + 1) & (table->slot_count - 1);
    table->slots[slot] = number + 1;
}

static int resize(struct name_table *table, size_t slot_count)
{
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return -1;
    free(table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    for (size_t i = 0; i < table->names->count; i++)
        place(table, (uint32_t)i);
    return 0;
}

int name_table_init(struct name_table *table, struct name_array *names)
{
    *table = (struct name_table){.names = names};
    size_t slots = FIRST_SLOTS;
    while (slots < 2 * names->count)
        slots *= 2;
    return resize(table, slots);
}

void name_table_fini(struct name_table *table)
{
    free(table->slots);
    table->slots = NULL;
    table->slot_count = 0;
}

int name_table_intern(struct name_table *table, const char *text, size_t bytes, uint32_t *number)
{
    char name[LONGEST_NAME + 1];
    size_t length = 0;
    for (; length < bytes && length < LONGEST_NAME && text[length]; length++)
        name[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    name[length] = '\0';
    size_t slot = hash_of(name) & (table->slot_count - 1);
    for (; table->slots[slot]; slot = (slot + 1) & (table->slot_count - 1)) {
        if (strcmp(table->names->items[table->slots[slot] - 1], name) == 0) {
            *number = table->slots[slot] - 1;
            return 0;
        }
    }
    char *copy = table->names->count <= SPAN_NAMES ? strdup(name) : NULL;
    if (!copy)
        return -1;
    if (array_push(table->names, copy) < 0) {
        free(copy);
        return -1;
    }
    *number = (uint32_t)table->names->count - 1;
    if (2 * table->names->count > table->slot_count)
        return resize(table, 2 * table->slot_count);
    place(table, *number);
    return 0;
}
