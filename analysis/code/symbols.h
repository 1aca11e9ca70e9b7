// SPDX-License-Identifier: MIT
//
// Addresses to function names: the kernel's kallsyms, ELF symbol tables (.symtab, .dynsym, the
// separate debug file, .gnu_debugdata), DWARF where a file has nothing else, JIT maps
// (perf-<pid>.map). Tables are read when first needed, sorted, and searched by bisection; names are
// interned, so that equal names have equal numbers.
#ifndef ANALYSIS_CODE_SYMBOLS_H
#define ANALYSIS_CODE_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/code/code_image.h"
#include "analysis/code/symbols_table.h"
#include "analysis/perf/perf_data.h"
#include "base/error.h"
#include "base/name_pool.h"

struct symbols; // symbols_find reads tables when first needed, so: one thread, or symbols_load_all

struct symbol_hit {
    uint32_t name;  // in symbols_names()
    uint64_t begin; // run-time addresses of the function
    uint64_t end;
    uint32_t file; // index into code_images.files, UINT32_MAX: kernel without file, JIT
    bool kernel;
    bool known; // false: no symbol covers it, and name is "[file]" or "[unknown]"
};

// images must outlive it. jit_dir: where perf-<pid>.map files are looked for before /tmp, where the
// compilers write them (NULL: only there).
struct symbols *symbols_alloc(const struct perf_data *data, const struct code_images *images,
                              const char *jit_dir, const char *debug_dir, struct error *err);
void symbols_free(struct symbols *symbols);
struct name_pool *symbols_names(struct symbols *symbols);

// Reads every table now. From then on symbols_find changes nothing, and any number of threads may
// call it. Negative only when out of memory.
int symbols_load_all(struct symbols *symbols, struct error *err);

// What could not be read of the tables so far, and why: one text a table, for people.
struct symbol_complaints ARRAY_OF(char *);
const struct symbol_complaints *symbols_complaints(const struct symbols *symbols);

// Names the address in a process at a time. Always fills *hit; false where no symbol covers it: the
// name is then that of the file ("[libc.so.6]") or "[unknown]", and [begin, end) where no address
// has another, as far as that costs nothing to say: empty, or the whole of code without symbols.
bool symbols_find(struct symbols *symbols, uint32_t pid, uint64_t time, uint64_t address,
                  struct symbol_hit *hit);

// C++ names (and Rust's that look like them) made readable, others as they are. The caller frees;
// NULL: out of memory.
char *symbol_demangle(const char *name);

// --- functions that the kernel made while it ran -------------------------------------------------
// Functions that the kernel made while it ran (BPF programs, trampolines, optimised probes) and
// removed again, from KSYMBOL records. An address may have had several names, one after another.

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
