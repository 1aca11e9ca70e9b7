// SPDX-License-Identifier: MIT
//
// The bytes of one PT stream, wherever they lie: in one block of memory, or in the many pieces in
// which perf.data keeps them. Readers ask for a view of a range and get a pointer.
#ifndef ANALYSIS_PT_PACKETS_PT_BYTES_H
#define ANALYSIS_PT_PACKETS_PT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pages.h"

struct pt_bytes {
    uint64_t bytes;
    const uint8_t *data; // all bytes; NULL: call view
    // A pointer to [offset, offset + bytes), within the stream; may copy into scratch, which has
    // room for `bytes`. Called by several threads at once.
    const uint8_t *(*view)(void *context, uint64_t offset, size_t bytes, uint8_t *scratch);
    void (*release)(void *context, uint64_t offset, uint64_t bytes); // may be NULL
    void *context;
    // Ascending offsets at which bytes are missing: packets do not continue across them.
    const uint64_t *breaks;
    size_t break_count;
    // `data` is a private read-only mapping of a file: what was read may be given back to the
    // kernel, so that memory does not grow with the trace.
    bool mapped;
};

static inline const uint8_t *pt_bytes_view(const struct pt_bytes *source, uint64_t offset,
                                           size_t bytes, uint8_t *scratch)
{
    return source->data ? source->data + offset
                        : source->view(source->context, offset, bytes, scratch);
}

// Whether a view needs room to copy into.
static inline bool pt_bytes_scattered(const struct pt_bytes *source)
{
    return !source->data;
}

// The first break after this offset, or the end.
static inline uint64_t pt_bytes_until(const struct pt_bytes *source, uint64_t offset)
{
    for (size_t i = 0; i < source->break_count; i++)
        if (source->breaks[i] > offset)
            return source->breaks[i];
    return source->bytes;
}

// [offset, offset + bytes) will not be read again soon.
static inline void pt_bytes_release(const struct pt_bytes *source, uint64_t offset, uint64_t bytes)
{
    if (source->release)
        source->release(source->context, offset, bytes);
    if (source->mapped && source->data)
        pages_release(source->data, source->data + offset, bytes);
}

#endif
