// SPDX-License-Identifier: MIT
//
// What the host's disks did: each request from when it was made to when it was completed, in host
// time, and which of them ended a thread's sleep.
#ifndef ANALYSIS_TIMELINE_DISKS_H
#define ANALYSIS_TIMELINE_DISKS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/span.h"

// The request whose completion woke the thread: the latest one completed by the same core, a moment
// before. NULL: none was, or another program woke it.
const struct disk_request *disk_request_of_waking(const struct host_timeline *host,
                                                  const struct waking *waking);

// What a disk had to do with a piece of time.
enum disk_stage {
    DISK_HELD_BACK, // it had no request: an I/O limit, or who makes the requests, is behind it
    DISK_QUEUES,    // the request waits for the disk's driver
    DISK_SERVES,    // the driver or the device has it
};

// Calls `each` for the pieces that tile [begin_ns, end_ns), which a completion of `last` ended: for
// the requests of that disk in the order in which they were completed. `request` is the one at
// hand.
typedef void disk_stage_visitor(const struct disk_request *request, enum disk_stage stage,
                                int64_t begin_ns, int64_t end_ns, void *context);
void disk_stages(const struct host_timeline *host, const struct disk_request *last,
                 int64_t begin_ns, int64_t end_ns, disk_stage_visitor *each, void *context);

// "disk vda: write", "disk vda: queue", "disk vda: held back".
void disk_stage_name(const struct host_timeline *host, const struct disk_request *request,
                     enum disk_stage stage, char *out, size_t out_bytes);

#endif
