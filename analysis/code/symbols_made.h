// SPDX-License-Identifier: MIT
//
// Functions that the kernel made while it ran (BPF programs, trampolines, optimised probes) and
// removed again, from KSYMBOL records. An address may have had several names, one after another.
#ifndef ANALYSIS_CODE_SYMBOLS_MADE_H
#define ANALYSIS_CODE_SYMBOLS_MADE_H

#include "analysis/code/symbols_table.h"
#include "analysis/perf/perf_data.h"

struct made_symbol {
    struct symbol symbol;
    uint64_t from, to; // perf clock, [from, to)
};
struct made_symbols ARRAY_OF(struct made_symbol); // by address, then time

// Reads the recording's KSYMBOL records. -1: out of memory. The caller frees the array.
int made_symbols_read(const struct perf_data *data, struct name_pool *pool,
                      struct made_symbols *out);

// The function at the address at that time; if there was none, one from another time (a trace may
// have no times), or NULL.
const struct symbol *made_symbols_find(const struct made_symbols *made, uint64_t address,
                                       uint64_t time);

#endif
