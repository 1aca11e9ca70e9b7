// SPDX-License-Identifier: MIT
//
// Tables of symbols from text: kallsyms (the input begins with 'K') or a JIT compiler's map. What
// they are read from is anyone's to write. A table that was sorted is in order, has one symbol for
// an address, and finds each.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/code/symbols.h"
#include "analysis/code/symbols_table.h"
#include "tests/analysis/code/fuzz_file.h"

static void check(struct symbol_table *table, const struct name_pool *pool)
{
    symbol_table_sort(table);
    for (size_t i = 0; i < table->symbols.count; i++) {
        const struct symbol *one = &table->symbols.items[i];
        if (one->end <= one->address || (i > 0 && one[-1].address >= one->address))
            abort();
        if (symbol_table_find(table, one->address) != one)
            abort();
        if (strlen(name_pool_text(pool, one->name)) == 0)
            abort();
        const struct symbol *before =
            one->address ? symbol_table_find(table, one->address - 1) : NULL;
        if (before && (before->address >= one->address || before->end < one->address))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct symbol_table table = {0};
    struct error err = {0};
    struct fuzz_file file;
    uint64_t malformed = 0;
    if (count == 0 || fuzz_file_make(&file, bytes + 1, count - 1) < 0)
        return 0;
    struct name_pool *pool = name_pool_alloc();
    int result = bytes[0] == 'K'
                     ? symbol_table_add_kallsyms(&table, pool, file.path, &err)
                     : symbol_table_add_jit_map(&table, pool, file.path, &malformed, &err);
    if (result < 0 && !err.text[0])
        abort(); // refused without a word
    check(&table, pool);
    symbol_table_free(&table);
    name_pool_free(pool);
    fuzz_file_remove(&file);
    return 0;
}
