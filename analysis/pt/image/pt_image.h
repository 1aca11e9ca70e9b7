// SPDX-License-Identifier: MIT
//
// The code a traced machine executed, as libipt wants it. Intel PT records only where branches
// went; every decoder needs the bytes in between. Sections (a piece of a file, or of memory, and
// the address it lay at) are collected once in a struct pt_memory. Each thread then makes libipt's
// objects of its own from them: sharing a section cache costs two locks for every change of
// section, and libipt's division into blocks would depend on which thread came first.
#ifndef ANALYSIS_PT_IMAGE_PT_IMAGE_H
#define ANALYSIS_PT_IMAGE_PT_IMAGE_H

#include <intel-pt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

// Sections of this space are part of every image: the kernel, or simply everything when a trace
// has one process.
enum { PT_SPACE_ALL = 0 };

// Code that is patched while it is traced has states (pt_patches.h). Which one is meant travels in
// the upper bits of an address space's number.
enum {
    PT_SPACE_BITS = 18,
    PT_SPACES_MOST = 1 << PT_SPACE_BITS,
    PT_STATES_MOST = 1 << (32 - PT_SPACE_BITS),
};

static inline uint32_t pt_space_in_state(uint32_t space, uint32_t state)
{
    return space | state << PT_SPACE_BITS;
}

static inline uint32_t pt_space_of(uint32_t space)
{
    return space & (PT_SPACES_MOST - 1);
}

static inline uint32_t pt_state_of(uint32_t space)
{
    return space >> PT_SPACE_BITS;
}

struct pt_section_entry {
    char *path; // owned
    uint64_t offset, bytes, address;
    uint32_t space;                  // PT_SPACE_ALL or the caller's number of an address space
    uint32_t first_state, end_state; // the states in which it is there: [first, end)
};

struct pt_memory {
    struct pt_section_entries ARRAY_OF(struct pt_section_entry) sections;
    struct pt_descriptors ARRAY_OF(int) descriptors; // of sections that came from memory
    uint64_t bytes;                                  // of all sections
    int states;                                      // descriptor of the states' code; 0: none
    uint64_t states_bytes;
    // Code and names in the upper half of the addresses, the kernel's, depend on the state alone,
    // and those in the lower half on the space alone.
    bool kernel_apart;
};

// A zeroed struct is empty memory; the caller calls pt_memory_free, after its codes.
void pt_memory_free(struct pt_memory *memory);

// `bytes` bytes at `offset` of the file lay at `address`. A section that reaches over the end of
// the file is cut there; one that lies wholly beyond it is ERROR_INPUT. Later sections hide
// earlier ones of the same space where they overlap. The file must stay as it is.
int pt_memory_add_file(struct pt_memory *memory, const char *path, uint64_t offset, uint64_t bytes,
                       uint64_t address, uint32_t space, struct error *err);

// The same for bytes in memory; they are copied.
int pt_memory_add_bytes(struct pt_memory *memory, const void *data, size_t bytes, uint64_t address,
                        uint32_t space, struct error *err);

// The same for bytes that exist only in the states [first, end), in every space. Many small ones
// share one file.
int pt_memory_add_state(struct pt_memory *memory, const void *data, size_t bytes, uint64_t address,
                        uint32_t first_state, uint32_t end_state, struct error *err);

// What lies at these addresses in every space is there before that state only. What is added later
// is not concerned.
int pt_memory_end(struct pt_memory *memory, uint64_t address, uint64_t bytes, uint32_t state,
                  struct error *err);

// One thread's view of the memory: a section cache and an image for each address space asked for.
struct pt_code_view;
struct pt_code_view *pt_code_view_alloc(const struct pt_memory *memory, struct error *err);
void pt_code_view_free(struct pt_code_view *view);

// The image of the sections of PT_SPACE_ALL and `space`, in the state that `space` names. Belongs
// to the view, which may free it after making PT_IMAGES_MOST others.
enum { PT_IMAGES_MOST = 64 };
int pt_code_view_image(struct pt_code_view *view, uint32_t space, struct pt_image **out,
                       struct error *err);

// Reads up to `bytes` bytes of code from the section with that number (pt_block.isid). Returns how
// many, or a negative number where there are none.
int pt_code_view_read(struct pt_code_view *view, int isid, uint64_t address, uint8_t *out,
                      size_t bytes);

// --- names ---------------------------------------------------------------------------------------
// What the decoding threads need to know about functions. Without symbols (raw pages) calls are
// known all the same: the called address then stands for the function.

struct pt_function {
    uint64_t low, high; // addresses [low, high)
    uint64_t key;       // names the function; the cold part of a function has its key too. Not 0
    bool whole;         // low is the function's entry (false: a cold part)
};

struct pt_symbols {
    void *context;
    // Finds the function that holds the address in this address space; false where
    // none is known: out, zeroed before, may then say within which range none is. Called by many
    // threads at once.
    bool (*find)(void *context, uint32_t space, uint64_t address, struct pt_function *out);
    // Writes the function's readable name. Called by one thread at a time. Returns out.
    char *(*name)(void *context, uint64_t key, char *out, size_t out_bytes);
};

#endif
