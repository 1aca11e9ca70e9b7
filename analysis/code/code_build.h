// SPDX-License-Identifier: MIT
//
// Where the code of every process of a recording is: its mappings, resolved.
#ifndef ANALYSIS_CODE_CODE_BUILD_H
#define ANALYSIS_CODE_CODE_BUILD_H

#include "analysis/code/code_files.h"
#include "analysis/code/code_image.h"
#include "analysis/perf/perf_data_maps.h"
#include "base/error.h"

// Resolves every mapping. maps NULL: only files named by the user, in one space with pid
// PERF_NO_PID; otherwise those are added to every process's space: pages and ELF files replace
// mappings, core dumps fill the gaps between them (the vdso, JIT code). Files named by the user
// that cannot be read are ERROR_INPUT; everything else is a complaint.
int code_images_build(const struct perf_maps *maps, const struct code_image_options *options,
                      struct code_images *out, struct error *err);

// --- code given by hand: --page and --elf --------------------------------------------------------

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

#endif
