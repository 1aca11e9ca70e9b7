// SPDX-License-Identifier: MIT
//
// One table of symbols: filled from text (kallsyms, JIT maps), sorted, searched. ELF files are read
// in symbols_elf.c.
#include "analysis/code/symbols_table.h"
#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int table_add(struct symbol_table *table, struct name_pool *pool, uint64_t address,
                     uint64_t end, const char *name, uint32_t rank)
{
    struct symbol symbol = {address, end, name_pool_add(pool, name, strlen(name)), rank};
    return symbol.name == UINT32_MAX ? -1 : array_push(&table->symbols, symbol);
}

static bool is_function(char type)
{
    return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

int symbol_table_add_kallsyms(struct symbol_table *table, struct name_pool *pool, const char *path,
                              struct error *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(err, ERROR_INPUT, "%s", path);
    char *line = NULL;
    size_t line_bytes = 0, functions = 0, zero = 0;
    int result = 0;
    while (result == 0 && getline(&line, &line_bytes, file) > 0) {
        char *rest;
        uint64_t address = strtoull(line, &rest, 16);
        if (rest == line || *rest != ' ' || !rest[1] || rest[2] != ' ' || !is_function(rest[1]))
            continue;
        char *name = rest + 3;
        name[strcspn(name, "\t\n")] = '\0'; // the module follows a tab
        functions++;
        zero += address == 0;
        uint32_t rank = rest[1] == 'T' ? 3 : rest[1] == 't' ? 2 : 1;
        if (address && *name && table_add(table, pool, address, 0, name, rank) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for the symbols of %s", path);
    }
    free(line);
    fclose(file);
    if (result == 0 && functions == zero)
        result = error_set(err, ERROR_INPUT,
                           functions ? "%s: all addresses are 0; copy it as root, or set "
                                       "kernel.kptr_restrict to 0"
                                     : "%s: holds no functions",
                           path);
    return result;
}

int symbol_table_add_jit_map(struct symbol_table *table, struct name_pool *pool, const char *path,
                             uint64_t *malformed, struct error *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(err, ERROR_INPUT, "%s", path);
    char *line = NULL;
    size_t line_bytes = 0;
    uint32_t number = 0;
    int result = 0;
    while (result == 0 && getline(&line, &line_bytes, file) > 0) {
        char *after_address, *after_size;
        uint64_t address = strtoull(line, &after_address, 16);
        uint64_t bytes = strtoull(after_address, &after_size, 16);
        size_t spaces = strspn(after_size, " \t");
        char *name = after_size + spaces;
        name[strcspn(name, "\n")] = '\0';
        if (after_address == line || after_size == after_address || !spaces || !*name ||
            bytes > UINT64_MAX - address || bytes == 0) {
            (*malformed)++;
            continue;
        }
        number += number < UINT32_MAX; // recompiled code is listed again: the last entry counts
        if (table_add(table, pool, address, address + bytes, name, number) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for the symbols of %s", path);
    }
    free(line);
    fclose(file);
    return result;
}

static int by_address_and_rank(const void *a, const void *b)
{
    const struct symbol *left = a, *right = b;
    return order_of(left->address, right->address) ?:
           order_of(right->rank, left->rank) ?:
           order_of(left->name, right->name);
}

void symbol_table_sort(struct symbol_table *table)
{
    enum { LAST_BYTES = 4096 }; // for a last symbol without a size
    struct symbol_array *symbols = &table->symbols;
    if (!symbols->count)
        return;
    array_sort(symbols, by_address_and_rank);
    size_t kept = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        struct symbol *last = kept ? &symbols->items[kept - 1] : NULL;
        const struct symbol *one = &symbols->items[i];
        if (one->address ==
            UINT64_MAX) // the value of a number that was too large; such a symbol would have no end
            continue;
        if (!last || last->address != one->address)
            symbols->items[kept++] = *one;
        else if (last->end < one->end)
            last->end = one->end; // an alias that has a size
    }
    symbols->count = kept;
    for (size_t i = 0; i < kept; i++) {
        struct symbol *one = &symbols->items[i];
        if (one->end > one->address)
            continue;
        if (i + 1 < kept)
            one->end = symbols->items[i + 1].address;
        else
            one->end =
                one->address > UINT64_MAX - LAST_BYTES ? UINT64_MAX : one->address + LAST_BYTES;
    }
}

const struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address)
{
    enum { NESTING = 16 }; // a label may stand within a function
    // the first one after the address
    size_t low =
        array_bound(0, table->symbols.count, at, table->symbols.items[at].address <= address);
    for (size_t i = low; i > 0 && low - i < NESTING; i--)
        if (address < table->symbols.items[i - 1].end)
            return &table->symbols.items[i - 1];
    return NULL;
}

void symbol_table_free(struct symbol_table *table)
{
    array_free(&table->symbols);
}
