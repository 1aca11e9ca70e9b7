// SPDX-License-Identifier: MIT
//
// One walk over a part of a stream in one of the two ways (pt_walker.h). pt_walk.h, its only user,
// chooses the way.
#ifndef ANALYSIS_PT_WALK_PT_WALK_ONCE_H
#define ANALYSIS_PT_WALK_PT_WALK_ONCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/pt/walk/pt_flow.h"
#include "analysis/pt/walk/pt_stream.h"
#include "analysis/pt/walk/pt_walker.h"
#include "base/error.h"

enum { PT_WALK_UNUSUAL = 1 };

struct pt_walk_how {
    bool following; // the fast way, else libipt's block decoder
    bool to_error;  // only up to the first error
};

// As pt_walk, in one way. PT_WALK_UNUSUAL: the fast way came to what only libipt can do; *piece is
// then worth nothing. The times of the flows are those of the packets.
int pt_walk_once(struct pt_walker *walker, const struct pt_stream *stream, size_t first_sync,
                 size_t end_sync, struct pt_walk_how how, struct pt_piece *piece,
                 struct error *err);

#endif
