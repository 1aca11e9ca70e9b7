// SPDX-License-Identifier: MIT
//
// What a thread that walks PT streams (pt_walk.h) keeps between walks: the decoder for the bytes of
// the piece, its view of the code, and caches of what it looked up. There are two decoders: the
// fast one (pt_follow.h), and libipt's block decoder for everything the fast one cannot do. Only
// walks use its members (pt_walk.c).
#ifndef ANALYSIS_PT_WALK_PT_WALKER_H
#define ANALYSIS_PT_WALK_PT_WALKER_H

#include "analysis/pt/image/pt_image.h"
#include "analysis/pt/walk/pt_flow.h"
#include "analysis/pt/walk/pt_follow.h"
#include "analysis/pt/walk/pt_stream.h"
#include "analysis/pt/walk/pt_trails.h"
#include "base/error.h"
#include "base/room.h"

enum {
    PT_FUNCTION_CACHE = 128, // powers of two
    PT_CLASS_CACHE = 1024,   //
    PT_MODES = 4,            // enum pt_exec_mode
    PT_MANY_BYTES = 1 << 20, // of trace: decoding them takes longer than getting a huge page
};

struct pt_cached_function {
    uint64_t address;
    uint32_t space;
    struct pt_function function;
};

struct pt_cached_class {
    uint64_t address;
    int isid;
    enum pt_exec_mode view;
    enum pt_insn_class class;
};

struct pt_walker {
    struct room room; // of what grows with the code that was learned, and of pieces
    const struct pt_memory *memory;
    struct pt_code_view *code; // what `follow` learns from, and `decoder` in 64-bit mode
    // libipt remembers code as it was in the mode in which it saw it first, and then misreads it in
    // another, as where a damaged packet says so. It sees each mode's code alone: `code` here, too.
    struct pt_code_view *views[PT_MODES];
    enum pt_exec_mode mode, view; // what `decoder` knows of the mode; of the view that it reads
    uint32_t space;               // that it reads
    const struct pt_symbols *symbols;
    bool careful;   // never use `follow`
    bool following; // `follow` reads the bytes of the piece, otherwise `decoder`
    struct pt_stretches stretches;
    struct pt_paths paths;
    struct pt_trails trails;
    struct pt_follow follow;
    struct pt_block_decoder *decoder;
    struct pt_piece part; // of a piece that is walked part by part (pt_walk.c)
    const uint8_t *data;  // the bytes of the piece
    uint8_t *scratch;     // a copy of them where they lie scattered
    size_t scratch_bytes;
    // As many as were looked up, in that order: of a short trace few, and their pages cost most.
    struct pt_cached_functions ARRAY_OF(struct pt_cached_function) functions;
    uint8_t function_places[PT_FUNCTION_CACHE]; // by hash: the place in `functions` + 1; 0: none
    struct pt_cached_function function;         // where there is no memory for more
    struct pt_cached_class *classes;            // beside `decoder`
};

// A walker belongs to one thread and may walk any number of streams, one after another. symbols may
// be NULL. careful: decode everything with libipt's block decoder; slower, with the same result.
struct pt_walker *pt_walker_alloc(const struct pt_memory *memory, const struct pt_symbols *symbols,
                                  bool careful, struct error *err);
void pt_walker_free(struct pt_walker *walker);

// It will walk that many bytes or so: of many its tables will be large, and huge pages are then
// cheaper from the start.
void pt_walker_expect(struct pt_walker *walker, uint64_t bytes);

// Prepares to decode [begin, end) of the stream, with `follow` or without.
int pt_walker_open(struct pt_walker *walker, const struct pt_stream *stream, uint64_t begin,
                   uint64_t end, bool following, struct error *err);

// Like the functions of the same names of libipt's block decoder.
static inline int pt_walker_sync(struct pt_walker *walker, uint64_t offset)
{
    walker->mode = ptem_unknown;
    return walker->following ? pt_follow_sync(&walker->follow, offset)
                             : pt_blk_sync_set(walker->decoder, offset);
}

// From now on `decoder` reads the view of its mode.
int pt_walker_change_view(struct pt_walker *walker);

static inline int pt_walker_next(struct pt_walker *walker, struct pt_block *block)
{
    if (walker->following)
        return pt_follow_next(&walker->follow, block);
    int status = walker->mode == walker->view ? 0 : pt_walker_change_view(walker);
    return status < 0 ? status : pt_blk_next(walker->decoder, block, sizeof *block);
}

static inline int pt_walker_event(struct pt_walker *walker, struct pt_event *event)
{
    if (walker->following)
        return pt_follow_event(&walker->follow, event);
    int status = pt_blk_event(walker->decoder, event, sizeof *event);
    if (status >= 0 && event->type == ptev_exec_mode)
        walker->mode = event->variant.exec_mode.mode;
    return status;
}

static inline int pt_walker_offset(const struct pt_walker *walker, uint64_t *offset)
{
    if (!walker->following)
        return pt_blk_get_offset(walker->decoder, offset);
    *offset = pt_query_offset(&walker->follow.query);
    return 0;
}

static inline int pt_walker_time(struct pt_walker *walker, uint64_t *tsc, uint32_t *lost_mtc,
                                 uint32_t *lost_cyc)
{
    const struct pt_reading *read = &walker->follow.query.read;
    if (!walker->following)
        return pt_blk_time(walker->decoder, tsc, lost_mtc, lost_cyc);
    *tsc = read->tsc;
    *lost_mtc = read->lost_mtc;
    *lost_cyc = read->lost_cyc;
    return read->known ? 0 : -pte_no_time;
}

// From now on code is read from this address space.
int pt_walker_set_space(struct pt_walker *walker, uint32_t space, struct error *err);

// The function that holds the address, key 0 where none is known; walker->symbols must be there.
// Valid until the next call.
const struct pt_function *pt_walker_function(struct pt_walker *walker, uint32_t space,
                                             uint64_t address);

// The class of a block's last instruction where libipt does not report it.
enum pt_insn_class pt_walker_class(struct pt_walker *walker, const struct pt_block *block);

#endif
