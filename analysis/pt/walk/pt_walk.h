// SPDX-License-Identifier: MIT
//
// Walks a piece of a PT stream with libipt: counts the executed instructions and collects the flow
// of control. A piece begins at one PSB and ends exactly where the walk from another PSB begins, so
// pieces walked in parallel add up to what one walk over all would have seen: at every PSB the
// processor says where it is, and libipt reports that as an event there.
//
// What a walk knew is forgotten where the next piece begins: where a trace is damaged a walk goes
// astray, often without noticing, and until where must depend neither on the way nor on where the
// trace was cut. So each PSB of the index at which a walk can end begins a piece (pt_segments.c).
// What the fast way cannot do is walked again by libipt. A piece with an error in it that holds
// PSBs which the index of a long stream lacks is walked once more, from each of these to the next.
//
// The instruction decoder of libipt 2.0.5 is not used: it fails on most real traces
// ("trace stream does not match query") that the block decoder reads cleanly.
#ifndef ANALYSIS_PT_WALK_PT_WALK_H
#define ANALYSIS_PT_WALK_PT_WALK_H

#include <stddef.h>

#include "analysis/pt/walk/pt_flow.h"
#include "analysis/pt/walk/pt_stream.h"
#include "analysis/pt/walk/pt_walker.h"
#include "base/error.h"

// Walks [first_sync, end_sync); end_sync is the number of syncs (to the end of the stream) or the
// next sync at which a walk can end (struct pt_sync). Decode errors are results (piece->errors),
// not failures: the walk goes on at the next PSB of the piece. Fails only for want of memory.
// *piece is overwritten, its arrays are reused.
int pt_walk(struct pt_walker *walker, const struct pt_stream *stream, size_t first_sync,
            size_t end_sync, struct pt_piece *piece, struct error *err);

#endif
