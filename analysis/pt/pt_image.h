// SPDX-License-Identifier: MIT
//
// The code a traced machine executed, as libipt wants it. Intel PT records only where branches
// went; every decoder needs the bytes in between. Sections (a piece of a file, or of memory, and
// the address it lay at) are collected once in a struct pt_memory, whose section cache all threads
// share; each thread then takes a libipt image of its own for each address space it decodes.
#ifndef ANALYSIS_PT_PT_IMAGE_H
#define ANALYSIS_PT_PT_IMAGE_H

#include <intel-pt.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

// Sections of this space are part of every image: the kernel, or simply everything when a trace
// has one process.
enum { PT_SPACE_ALL = 0 };

struct pt_section_entry {
    uint64_t address, bytes;
    int isid;       // in the cache
    uint32_t space; // PT_SPACE_ALL or the caller's number of an address space
};

struct pt_memory {
    struct pt_image_section_cache *cache;
    struct pt_section_entries ARRAY_OF(struct pt_section_entry) sections;
    struct pt_descriptors ARRAY_OF(int) descriptors; // of sections that came from memory
    uint64_t bytes;                                  // of all sections
};

// On success the caller calls pt_memory_free. Images taken from it must be freed before.
int pt_memory_init(struct pt_memory *memory, struct error *err);
void pt_memory_free(struct pt_memory *memory);

// `bytes` bytes at `offset` of the file lay at `address`. A section that reaches over the end of
// the file is cut there; one that lies wholly beyond it is ERROR_INPUT. Later sections hide
// earlier ones of the same space where they overlap. The file must stay as it is.
int pt_memory_add_file(struct pt_memory *memory, const char *path, uint64_t offset, uint64_t bytes,
                       uint64_t address, uint32_t space, struct error *err);

// The same for bytes in memory; they are copied.
int pt_memory_add_bytes(struct pt_memory *memory, const void *data, size_t bytes, uint64_t address,
                        uint32_t space, struct error *err);

// A new image of PT_SPACE_ALL's sections and those of `space`; the caller frees it with
// pt_image_free. Images are not to be shared between threads: libipt reorders them as it reads.
int pt_memory_image(const struct pt_memory *memory, uint32_t space, struct pt_image **out,
                    struct error *err);

#endif
