// SPDX-License-Identifier: MIT
//
// Decodes many streams on all cores. A stream is cut into pieces at its PSBs; threads walk the
// pieces in any order, and what they find is delivered in the order of the stream, one piece at a
// time. Only a few pieces are held at once, so memory does not grow with the trace. Where only some
// windows of time are asked for, only the pieces that overlap them are walked at all; of a long
// stream the index of PSBs has to be refined for them first (pt_windows.h).
#ifndef ANALYSIS_PT_PT_SEGMENTS_H
#define ANALYSIS_PT_PT_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/pt/image/pt_image.h"
#include "analysis/pt/walk/pt_flow.h"
#include "analysis/pt/walk/pt_stream.h"
#include "base/error.h"

struct pt_decode_options {
    unsigned threads;                // 0: as many as this process has cores and are worth it
    const struct pt_window *windows; // ascending and disjoint; NULL: everything. For streams that
                                     // have none of their own
    size_t window_count;
    bool careful;         // as for pt_walker_alloc
    uint64_t piece_bytes; // of pieces that are walked in one go; 0: what is fastest
};

// Receives the pieces of a stream in order; called by several threads, but by one at a time for
// each stream. `contiguous`: nothing lies between this piece and the one before. A failure ends
// the decoding.
typedef int pt_piece_sink(void *context, size_t stream, const struct pt_piece *piece,
                          bool contiguous, struct error *err);

// Decodes; returns when everything was delivered. symbols may be NULL.
int pt_decode(const struct pt_memory *memory, const struct pt_symbols *symbols,
              const struct pt_stream *streams, size_t stream_count,
              const struct pt_decode_options *options, pt_piece_sink *sink, void *context,
              struct error *err);

#endif
