// SPDX-License-Identifier: MIT
//
// Gives a trace its code and its names: the files found for a recording
// (analysis/code/code_image.h) become sections for libipt, and their symbols
// (analysis/code/symbols.h) the functions that the decoding threads ask for.
#ifndef ANALYSIS_PT_IMAGE_PT_CODE_H
#define ANALYSIS_PT_IMAGE_PT_CODE_H

#include "analysis/code/code_build.h"
#include "analysis/code/code_image.h"
#include "analysis/code/symbols.h"
#include "analysis/pt/image/pt_image.h"
#include "analysis/pt/image/pt_patches.h"
#include "base/array.h"
#include "base/error.h"

// Files and the symbols in them.
struct pt_code_set {
    struct code_images images;
    struct symbols *symbols;
    struct pt_space_numbers ARRAY_OF(uint32_t) numbers; // of images.spaces, as libipt's images
};
struct pt_code_sets ARRAY_OF(struct pt_code_set *);

// The meaning of an address space number (pt_image.h).
struct pt_code_place {
    struct pt_code_set *set; // NULL: nothing known
    uint32_t pid;
    uint64_t time;
};
struct pt_code_places ARRAY_OF(struct pt_code_place);

struct pt_code {
    struct pt_code_sets sets;
    struct pt_code_places places;     // by address space
    const struct pt_patches *patches; // states of the kernel's code; NULL: it was not patched
    struct pt_symbols symbols;        // the interface for the decoding threads
};

int pt_code_init(struct pt_code *code, struct error *err);
void pt_code_free(struct pt_code *code);

// Adds files named by the user as the address space `space` (PT_SPACE_ALL or the next number).
int pt_code_add_given(struct pt_code *code, struct pt_memory *memory,
                      const struct code_given *given, size_t count, uint32_t space,
                      struct error *err);

// Adds the code that a recording mapped; every address space gets the next number, the kernel's is
// part of all. data and maps must outlive it.
int pt_code_add_recording(struct pt_code *code, struct pt_memory *memory,
                          const struct perf_data *data, const struct perf_maps *maps,
                          const struct code_image_options *options, struct error *err);

// The number of the address space of a process at a time (perf clock), PT_SPACE_ALL where unknown.
// *until: when that ends.
uint32_t pt_code_space_at(const struct pt_code *code, uint32_t pid, uint64_t time, uint64_t *until);

// Where code without a symbol is: its program or library and its address there, as addr2line and
// objdump have it ("memcached+0x144f0"), which is the same in each process and each run. Which
// process's address it is is not asked: no other is likely to have code there. False: in no ELF
// file of a program that is known.
bool pt_code_locate(const struct pt_code *code, uint64_t address, char *out, size_t out_bytes);

#endif
