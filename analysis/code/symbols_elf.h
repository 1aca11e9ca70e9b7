// SPDX-License-Identifier: MIT
//
// The functions of an ELF file.
#ifndef ANALYSIS_CODE_SYMBOLS_ELF_H
#define ANALYSIS_CODE_SYMBOLS_ELF_H

#include "analysis/code/symbols_table.h"

// Functions of an ELF file, in the file's own address terms. debug_dir: as code_image_options.
int symbol_table_add_elf(struct symbol_table *table, struct name_pool *pool, const char *path,
                         const char *debug_dir, struct error *err);

#endif
