// SPDX-License-Identifier: MIT
//
// The set of kernel addresses that were seen, and their names (/proc/kallsyms): the file
// functions.sym beside a function log.
#ifndef PROFILER_FUNCTION_SYMBOLS_H
#define PROFILER_FUNCTION_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"

// A set of addresses; zeroed: empty.
struct address_array ARRAY_OF(uint64_t);
struct function_symbols {
    struct address_array met;
    struct map known; // where in it
};

// -1: no memory.
int function_symbols_note(struct function_symbols *symbols, uint64_t address);

// Writes a line "<address> <name>" for each address with a name, ascending; the function is the one
// that begins at or nearest before the address. *named: how many.
int function_symbols_write(const struct function_symbols *symbols, const char *path, size_t *named,
                           struct error *err);
void function_symbols_free(struct function_symbols *symbols);

#endif
