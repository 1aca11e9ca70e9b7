// SPDX-License-Identifier: MIT
//
// What a thread that walks PT streams (pt_blocks.h) keeps between walks: the decoder for the bytes
// of the piece, its view of the code, and what it looked up before. Used by pt_blocks.c only.
#ifndef ANALYSIS_PT_PT_WALKER_H
#define ANALYSIS_PT_PT_WALKER_H

#include "analysis/pt/pt_blocks.h"

enum { PT_FUNCTION_CACHE = 4096, PT_CLASS_CACHE = 1024 }; // powers of two

struct pt_cached_function {
    uint64_t address;
    uint32_t space;
    bool known;
    struct pt_function function;
};

struct pt_cached_class {
    uint64_t address;
    int isid;
    enum pt_insn_class class;
};

struct pt_walker {
    struct pt_code_view *code;
    const struct pt_symbols *symbols;
    struct pt_block_decoder *decoder; // for the bytes of the piece
    uint8_t *scratch;                 // holds them where they lie scattered
    size_t scratch_bytes;
    struct pt_cached_function *functions;
    struct pt_cached_class classes[PT_CLASS_CACHE];
};

// Makes walker->decoder decode [begin, end) of the stream.
int pt_walker_open(struct pt_walker *walker, const struct pt_stream *stream, uint64_t begin,
                   uint64_t end, struct error *err);

// The function that holds the address, key 0 where none is known; walker->symbols must be there.
// Valid until the next call.
const struct pt_function *pt_walker_function(struct pt_walker *walker, uint32_t space,
                                             uint64_t address);

// The class of a block's last instruction where libipt does not tell.
enum pt_insn_class pt_walker_class(struct pt_walker *walker, const struct pt_block *block);

#endif
