// SPDX-License-Identifier: MIT
//
// The bytes of code that lie at an address, for whoever reads code without libipt. Where sections
// overlap, the later one hides the earlier, as in libipt's images; each part of a section that is
// not hidden is a part here, because libipt ends a block wherever one part ends. Files are mapped
// when they are first asked for.
#ifndef ANALYSIS_PT_IMAGE_PT_CODE_BYTES_H
#define ANALYSIS_PT_IMAGE_PT_CODE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/pt/image/pt_image.h"
#include "base/array.h"
#include "base/error.h"

struct pt_code_part {
    uint64_t low, last; // addresses, both included
    uint32_t section;   // of the memory
};
struct pt_code_parts ARRAY_OF(struct pt_code_part); // ascending and disjoint

// The parts of one address space in one state.
struct pt_code_layout {
    uint32_t space; // as in pt_image.h, with its state
    struct pt_code_parts parts;
};
struct pt_code_layouts ARRAY_OF(struct pt_code_layout);

struct pt_code_bytes {
    const struct pt_memory *memory;
    const uint8_t **mapped; // by section; NULL: not yet
    struct pt_code_layouts layouts;
    size_t current; // the layout that was asked for last
    bool kernel_apart;
};

// The memory must outlive it and not change any more. The caller calls pt_code_bytes_free, also
// after a failure.
int pt_code_bytes_init(struct pt_code_bytes *bytes, const struct pt_memory *memory,
                       struct error *err);
void pt_code_bytes_free(struct pt_code_bytes *bytes);

// One of the address spaces, always the same, that have the same code and the same names around
// that address as this one: what is learned in one process of the kernel's code serves for all.
static inline uint32_t pt_code_bytes_space(const struct pt_code_bytes *bytes, uint32_t space,
                                           uint64_t address)
{
    if (!bytes->kernel_apart)
        return space;
    return address >> 63 ? pt_space_in_state(PT_SPACE_ALL, pt_state_of(space)) : pt_space_of(space);
}

// Whether one of them is the other's, too, from whichever space one comes.
static inline bool pt_code_same_half(uint64_t address, uint64_t other)
{
    return !((address ^ other) >> 63);
}

// The part that holds the address in an address space. NULL: there is none, or no memory. Valid
// until the next call.
const struct pt_code_part *pt_code_bytes_part(struct pt_code_bytes *bytes, uint32_t space,
                                              uint64_t address);

// Whether there is certainly none.
bool pt_code_bytes_lack(struct pt_code_bytes *bytes, uint32_t space, uint64_t address);

// The byte at the part's `low`; the others follow. NULL: its file cannot be read.
const uint8_t *pt_code_bytes_at(struct pt_code_bytes *bytes, const struct pt_code_part *part);

#endif
