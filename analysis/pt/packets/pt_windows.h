// SPDX-License-Identifier: MIT
//
// Windows of time that are to be decoded, and the PSBs near them. The index of a long stream's PSBs
// is thinned out (pt_packets.h), so the bytes between two of its PSBs may be many times those that
// a window needs. Before a decode the bytes around the windows' edges are scanned once more for the
// PSBs in between: the index then has those where decoding begins and ends, and no others, so
// memory follows the number of windows and not the length of the trace.
#ifndef ANALYSIS_PT_PACKETS_PT_WINDOWS_H
#define ANALYSIS_PT_PACKETS_PT_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/pt/packets/pt_packets.h"
#include "base/array.h"
#include "base/error.h"

struct pt_window {
    uint64_t from, to; // TSC, both included
};
struct pt_windows ARRAY_OF(struct pt_window); // ascending and disjoint

// Whether anything of [from, to] may be in a window; to < from: the clock went back between them.
bool pt_windows_touch(const struct pt_windows *windows, uint64_t from, uint64_t to);

// Adds the PSBs in and at the edges of the windows to the index of these bytes' packets, so that
// decoding the windows finds what it finds with all PSBs in the index, and walks no more; of bytes
// that were only glanced at, it counts the packets between the PSBs around the windows. To be
// called once, before any decoding. Fails only for want of memory and leaves the index unchanged
// then.
int pt_windows_refine(const struct pt_windows *windows, const struct pt_bytes *source,
                      struct pt_packets *packets, struct error *err);

#endif
