// SPDX-License-Identifier: MIT
//
// The assembler includes the files, so building needs no other tool. page_files.inc lists them; the
// Makefile writes it from what this folder holds. Paths are relative to the top of the tree, where
// make runs.
#include "analysis/report/page_assets.h"

#define ASSET(symbol, file)                                                                        \
    __asm__(".section .rodata\n"                                                                   \
            ".local " #symbol "_begin, " #symbol "_end\n" #symbol                                  \
            "_begin: .incbin \"analysis/report/" file "\"\n" #symbol "_end: .byte 0\n"             \
            ".previous\n");                                                                        \
    extern const char symbol##_begin[], symbol##_end[];
#include "analysis/report/page_files.inc"
#undef ASSET

#define ASSET(symbol, file) {file, symbol##_begin, symbol##_end},
const struct page_asset page_assets[] = {
#include "analysis/report/page_files.inc"
    {0},
};
