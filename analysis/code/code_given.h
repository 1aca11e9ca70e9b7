// SPDX-License-Identifier: MIT
//
// Code given by hand: --page and --elf.
#ifndef ANALYSIS_CODE_CODE_GIVEN_H
#define ANALYSIS_CODE_CODE_GIVEN_H

#include "analysis/code/code_files.h"

// Raw code given by hand: bytes of `path` at `address` (--page 0xADDRESS=FILE), or an ELF file at
// its own addresses or moved so that its lowest loaded byte is at `base` (--elf FILE[@0xBASE]).
struct code_given {
    const char *path;
    uint64_t address; // page: where; ELF: base, when has_address
    bool has_address;
    bool raw; // a page
};

// Parses the values of --page and --elf.
int code_given_parse_page(const char *text, struct code_given *out, struct error *err);
int code_given_parse_elf(const char *text, struct code_given *out, struct error *err);
void code_given_free(struct code_given *given);

// Adds its sections, for every address space. Files that cannot be read are ERROR_INPUT.
int code_add_page(struct code_finder *finder, struct code_section_array *sections,
                  const struct code_given *given, struct error *err);
int code_add_elf(struct code_finder *finder, struct code_section_array *sections,
                 const struct code_given *given, struct error *err);

#endif
