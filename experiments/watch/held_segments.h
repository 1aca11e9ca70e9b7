// SPDX-License-Identifier: MIT
//
// Other names, in the capture's folder, for the segments that are being looked at: on a busy
// machine the capture may have made room for later ones before it is known that something in them
// is to be saved. A file goes when its last name does.
#ifndef EXPERIMENTS_WATCH_HELD_SEGMENTS_H
#define EXPERIMENTS_WATCH_HELD_SEGMENTS_H

#include <stddef.h>

#include "analysis/run/input/run_segments.h"

// A zeroed one holds none. What it holds goes with the folder.
struct held_segments {
    struct run_segment_range range; // last: 0, none
};

// From now on these are held, as far as they are there, and none that was before.
void held_segments_take(struct held_segments *held, const char *capture_dir,
                        struct run_segment_range range);

// Where a segment's log ("events", "sockets") is: by the name that it is held by, or if it is not,
// by its own.
void held_segment_path(const char *capture_dir, const char *log, unsigned number, char *out,
                       size_t out_bytes);

#endif
