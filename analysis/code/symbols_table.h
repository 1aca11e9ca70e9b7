// SPDX-License-Identifier: MIT
//
// One table of symbols, by address.
#ifndef ANALYSIS_CODE_SYMBOLS_TABLE_H
#define ANALYSIS_CODE_SYMBOLS_TABLE_H

#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/name_pool.h"

struct symbol {
    uint64_t address; // first byte
    uint64_t end;     // one past the last; where the table has no size, the next symbol's address
    uint32_t name;    // in the pool
    uint32_t rank;    // of several at one address, the highest is kept
};
struct symbol_array ARRAY_OF(struct symbol);

struct symbol_table {
    struct symbol_array symbols; // by address, one per address
};

// Each adds to the table and leaves it unsorted; symbol_table_sort ends the
// filling. kallsyms: functions only ("t", "T", "w", "W"), "[module]" kept out of the name. A
// kallsyms whose addresses are all zero (read without privileges) is ERROR_INPUT.
int symbol_table_add_kallsyms(struct symbol_table *table, struct name_pool *pool, const char *path,
                              struct error *err);
// perf-<pid>.map: "hex address, hex size, name" a line. Malformed lines are skipped and counted.
int symbol_table_add_jit_map(struct symbol_table *table, struct name_pool *pool, const char *path,
                             uint64_t *malformed, struct error *err);
// Sorts; of several symbols at one address the one with the highest rank is kept.
void symbol_table_sort(struct symbol_table *table);
const struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address);
void symbol_table_free(struct symbol_table *table);

// --- the functions of an ELF file ----------------------------------------------------------------

// Functions of an ELF file, in the file's own address terms. debug_dir: as code_image_options.
int symbol_table_add_elf(struct symbol_table *table, struct name_pool *pool, const char *path,
                         const char *debug_dir, struct error *err);

#endif
