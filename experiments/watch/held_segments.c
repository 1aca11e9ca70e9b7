// SPDX-License-Identifier: MIT
#include "experiments/watch/held_segments.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "experiments/common/run_folder.h"

static void held_name(const char *capture_dir, const char *log, unsigned number, char *out,
                      size_t out_bytes)
{
    snprintf(out, out_bytes, "%s/held-%s-%06u.tlog", capture_dir, log, number);
}

static void own_name(const char *capture_dir, const char *log, unsigned number, char *out,
                     size_t out_bytes)
{
    snprintf(out, out_bytes, "%s/%s-%06u.tlog", capture_dir, log, number);
}

static bool is_in(struct run_segment_range range, unsigned number)
{
    return range.last && number >= range.first && number <= range.last;
}

static void take_log(const struct run_segment_range before, const char *capture_dir,
                     const char *log, struct run_segment_range range)
{
    char own[RUN_PATH_BYTES + 64], other[RUN_PATH_BYTES + 64];
    for (unsigned number = before.first; is_in(before, number); number++) {
        held_name(capture_dir, log, number, other, sizeof other);
        if (!is_in(range, number))
            unlink(other);
    }
    for (unsigned number = range.first; is_in(range, number); number++) {
        own_name(capture_dir, log, number, own, sizeof own);
        held_name(capture_dir, log, number, other, sizeof other);
        if (!is_in(before, number))
            (void)!link(own, other); // where it cannot be, it is saved while it is there
    }
}

void held_segments_take(struct held_segments *held, const char *capture_dir,
                        struct run_segment_range range)
{
    take_log(held->range, capture_dir, "events", range);
    take_log(held->range, capture_dir, "sockets", range);
    held->range = range;
}

void held_segment_path(const char *capture_dir, const char *log, unsigned number, char *out,
                       size_t out_bytes)
{
    held_name(capture_dir, log, number, out, out_bytes);
    if (access(out, F_OK) < 0)
        own_name(capture_dir, log, number, out, out_bytes);
}
