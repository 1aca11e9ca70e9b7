// SPDX-License-Identifier: MIT
//
// Which function an address belongs to, asked by the decoding threads. Where nothing is known of
// functions (raw pages), calls still are: a function is then the address that was called.
#ifndef ANALYSIS_PT_PT_SYMBOLS_H
#define ANALYSIS_PT_PT_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pt_function {
    uint64_t low, high; // addresses [low, high)
    uint64_t key;       // names the function; the cold part of a function has its key too. Not 0
    bool whole;         // low is the function's entry (false: a cold part)
};

struct pt_symbols {
    void *context;
    // Finds the function that holds the address in this address space (pt_image.h); false where
    // none is known. Called by many threads at once.
    bool (*find)(void *context, uint32_t space, uint64_t address, struct pt_function *out);
    // Writes the function's name for people. Called by one thread at a time. Returns out.
    char *(*name)(void *context, uint64_t key, char *out, size_t out_bytes);
};

#endif
