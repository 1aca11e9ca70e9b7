// SPDX-License-Identifier: MIT
//
// What code images need to know of an ELF file: what it loads where, and which build it is. Reads
// through libelf; any file may be given, also one that is no ELF file.
#ifndef ANALYSIS_CODE_CODE_ELF_H
#define ANALYSIS_CODE_CODE_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

struct elf_load { // a PT_LOAD segment with bytes in the file
    uint64_t address, file_offset, bytes;
    bool executable;
};
struct elf_load_array ARRAY_OF(struct elf_load);

struct elf_facts {
    uint16_t type; // ET_EXEC, ET_DYN, ET_CORE, ET_REL
    bool has_code; // some executable section is there (a separate debug file has none)
    uint64_t file_bytes;
    uint64_t inode;
    uint8_t build_id[20];
    uint8_t build_id_size; // 0: none
    struct elf_load_array loads;
};

// Returns 0, or negative with *why set to the end of a sentence: "no such file", "not an ELF file",
// …; *missing is set for the first of these.
int elf_facts_read(const char *path, struct elf_facts *out, const char **why, bool *missing);
// The same for an image in memory (the vdso).
int elf_facts_of_memory(const void *image, size_t bytes, struct elf_facts *out, const char **why);
void elf_facts_free(struct elf_facts *facts);

// The file's own address of the byte at file_offset.
uint64_t elf_address_of_offset(const struct elf_facts *facts, uint64_t file_offset);

// Looks up a symbol's value; false when the file has none of that name.
bool elf_symbol_value(const char *path, const char *name, uint64_t *out);

#endif
