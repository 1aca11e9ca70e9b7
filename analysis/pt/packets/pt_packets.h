// SPDX-License-Identifier: MIT
//
// A first look at an Intel PT stream: one pass over its packets that counts them by kind, checks
// that each is whole, and finds the PSBs, the only places where decoding can begin. Where only
// windows of time are to be decoded, a glance is enough: it finds the PSBs by their bytes, reads
// the headers behind them, and no other packet. It needs no code and does no I/O; packet shapes are
// those of the Intel SDM, volume 3, "Packet Definitions".
#ifndef ANALYSIS_PT_PACKETS_PT_PACKETS_H
#define ANALYSIS_PT_PACKETS_PT_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/pt/packets/pt_shape.h"
#include "base/array.h"
#include "base/error.h"
#include "base/pages.h"

// --- the bytes of a stream -----------------------------------------------------------------------
// The bytes of one PT stream, wherever they lie: in one block of memory, or in the many pieces in
// which perf.data keeps them. Readers ask for a view of a range and get a pointer.

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
    size_t next = array_bound(0, source->break_count, at, source->breaks[at] <= offset);
    return next < source->break_count ? source->breaks[next] : source->bytes;
}

// [offset, offset + bytes) will not be read again soon.
static inline void pt_bytes_release(const struct pt_bytes *source, uint64_t offset, uint64_t bytes)
{
    if (source->release)
        source->release(source->context, offset, bytes);
    if (source->mapped && source->data)
        pages_release(source->data, source->data + offset, bytes);
}

// --- packets -------------------------------------------------------------------------------------

// A place where decoding can begin, and what its PSB+ header says.
struct pt_sync {
    uint64_t offset; // of the PSB
    uint64_t tsc;    // the header's; else the last one before it, or 0
    uint64_t ip;     // where the processor was; 0 where it was not tracing
    bool has_tsc;
    bool stray;       // names an address although tracing was off (see stray_headers)
    bool after_break; // bytes are missing before it
    bool went_back;   // the PSB before it has a later time
    bool hands_over;  // a walk can end here: the header names address and mode, or no address
                      // (not tracing)
};
struct pt_syncs ARRAY_OF(struct pt_sync);

// Something wrong at an offset; `what` is a constant string.
struct pt_flaw {
    uint64_t offset;
    const char *what;
};
struct pt_flaws ARRAY_OF(struct pt_flaw);

struct pt_packets {
    uint64_t bytes;   // of the stream
    uint64_t skipped; // before the first PSB, and between a flaw and the PSB after it
    uint64_t packets; // whole packets, from the first PSB on
    uint64_t count[PT_KINDS];
    uint64_t scanned; // bytes of which these are the packets and the flaws: all, or, of what was
                      // glanced at, those near windows. All PSBs are counted in any case
    bool glanced;
    uint64_t first_tsc, last_tsc; // 0 without TSC packets
    // PSB headers that name an address although tracing was off, as the TIP.PGE behind them shows:
    // erratum BDM70 of the first processors with PT. Decides how to decode when the processor's
    // model is unknown.
    uint64_t stray_headers;
    uint64_t timed_headers; // PSBs whose header has a TSC packet
    bool doubtful;          // where a PSB begins was not clear to a glance
    // Ascending offsets. All PSBs of a short stream; of a long one at most PT_MOST_SYNCS, evenly
    // spread, so that memory does not grow with the trace. The first, and those behind missing
    // bytes, or before which the clock went back, are always there. count[PT_KIND_PSB] has them
    // all. pt_windows_refine adds more.
    struct pt_syncs syncs;
    // Unknown or cut packets; the scan goes on at the next PSB. The first PT_FLAWS_KEPT.
    struct pt_flaws flaws;
    uint64_t flaw_count; // all of them
};

enum { PT_MOST_SYNCS = 8192, PT_FLAWS_KEPT = 1000 };

// Scans the stream in bounded memory. Fails only for want of memory. The caller calls
// pt_packets_free.
int pt_packets_scan(const struct pt_bytes *source, struct pt_packets *out, struct error *err);
// Scans [begin, end) alone, as if these were all bytes.
int pt_packets_scan_range(const struct pt_bytes *source, uint64_t begin, uint64_t end,
                          struct pt_packets *out, struct error *err);
// The same with another bound of the index than PT_MOST_SYNCS, which must be at least 2.
int pt_packets_scan_thinly(const struct pt_bytes *source, size_t most_syncs, struct pt_packets *out,
                           struct error *err);
void pt_packets_free(struct pt_packets *packets);

// A part of a long stream, of which other threads scan the others: from the first PSB at or behind
// `from` (0: from the stream's begin) to the one at or behind `to`.
struct pt_packets_part {
    uint64_t from, to;
    bool glance;         // read PSB+ headers only
    uint64_t begin, end; // where these are; where there is none, the stream's end
    bool broken;         // bytes are missing between its last PSB and its end
    uint64_t header_tsc; // of its last PSB with one
    struct pt_packets found;
};
// As pt_packets_scan_thinly; the caller calls pt_packets_free for what was found.
int pt_packets_scan_part(const struct pt_bytes *source, size_t most_syncs,
                         struct pt_packets_part *part, struct error *err);
// Makes one of the parts of a stream, in their order, of which the first begins where it does.
// Returns 1; 0 where they do not fit together, since one was begun at bytes that look like a PSB
// and are none: then the stream is to be scanned as a whole; or a negative error for want of
// memory.
int pt_packets_join(struct pt_packets_part *parts, size_t count, struct pt_packets *out,
                    struct error *err);

// Whether the glance at all of a stream found what a scan finds: the same PSBs with the same times.
// Else some header lacked its TSC packet or was damaged, and the stream is to be scanned. Then what
// is counted are no packets yet, but for the PSBs: pt_windows_refine counts those near windows.
bool pt_packets_glanced(struct pt_packets *packets);
// Adds a part's packets and flaws, which begins at that offset. Negative without memory.
int pt_packets_count_in(struct pt_packets *all, const struct pt_packets *part, uint64_t offset);

// The last sync at or before this time, or the first one; count when there is none at all.
size_t pt_packets_find(const struct pt_packets *packets, uint64_t tsc);

#endif
