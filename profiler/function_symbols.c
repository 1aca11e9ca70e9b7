// SPDX-License-Identifier: MIT
#include "profiler/function_symbols.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct symbol {
    uint64_t address;
    char name[88];
};
struct symbol_array ARRAY_OF(struct symbol);

int function_symbols_note(struct function_symbols *symbols, uint64_t address)
{
    uint64_t hash = hash64(address);
    if (!address ||
        map_find(&symbols->known, hash, at, symbols->met.items[at] == address) != MAP_NONE)
        return 0;
    if (array_push(&symbols->met, address) < 0)
        return -1;
    return map_add(&symbols->known, hash, symbols->met.count - 1);
}

void function_symbols_free(struct function_symbols *symbols)
{
    array_free(&symbols->met);
    map_free(&symbols->known);
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return order_of(a, b);
}

static int compare_symbols(const void *left, const void *right)
{
    return compare_addresses(&((const struct symbol *)left)->address,
                             &((const struct symbol *)right)->address);
}

// Functions of the kernel and its modules.
static int read_kallsyms(struct symbol_array *out, struct error *err)
{
    char line[400], type;
    unsigned long long address;
    struct symbol symbol;
    int result = 0;
    FILE *file = fopen("/proc/kallsyms", "re");
    if (!file)
        return error_set_errno(err, ERROR_FAILED, "cannot read /proc/kallsyms");
    while (result == 0 && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%llx %c %87s", &address, &type, symbol.name) != 3 || !address ||
            !strchr("tTwW", type))
            continue;
        symbol.address = address;
        result = array_push(out, symbol);
    }
    fclose(file);
    array_sort(out, compare_symbols);
    return result < 0 ? error_set(err, ERROR_FAILED, "no memory for the kernel's symbols") : 0;
}

static size_t write_names(FILE *file, const struct symbol_array *all, const uint64_t *addresses,
                          size_t count)
{
    size_t next = 0, named = 0;
    for (size_t i = 0; i < count; i++) {
        while (next < all->count && all->items[next].address <= addresses[i])
            next++;
        if (!next)
            continue;
        // Of several names of one address the first in the kernel's order; sorting has lost that
        // order.
        size_t at = next - 1;
        while (at > 0 && all->items[at - 1].address == all->items[at].address)
            at--;
        fprintf(file, "%llx %s\n", (unsigned long long)addresses[i], all->items[at].name);
        named++;
    }
    return named;
}

int function_symbols_write(const struct function_symbols *symbols, const char *path, size_t *named,
                           struct error *err)
{
    struct symbol_array all = {0};
    struct address_array addresses = {0};
    if (array_reserve(&addresses, symbols->met.count) < 0)
        return error_set(err, ERROR_FAILED, "no memory for the functions' addresses");
    for (size_t i = 0; i < symbols->met.count; i++)
        addresses.items[addresses.count++] = symbols->met.items[i];
    array_sort(&addresses, compare_addresses);
    int result = read_kallsyms(&all, err);
    FILE *file = result == 0 ? fopen(path, "we") : NULL;
    if (result == 0 && !file)
        result = error_set_errno(err, ERROR_FAILED, "cannot create %s", path);
    if (file)
        *named = write_names(file, &all, addresses.items, addresses.count);
    if (file && (ferror(file) | fclose(file)) != 0)
        result = error_set_errno(err, ERROR_FAILED, "cannot write %s", path);
    array_free(&all);
    array_free(&addresses);
    return result;
}
