// SPDX-License-Identifier: MIT
//
// How much trace a processor makes and how much may be taken, so that a recording neither fills a
// disk nor ends in a failed write: what is expected is checked before it begins, and what is there
// is looked at while it goes on.
#ifndef EXPERIMENTS_CAPTURE_TRACE_BOUNDS_H
#define EXPERIMENTS_CAPTURE_TRACE_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "profiler/trace/processor_trace.h"

// Of a capture that takes whatever this machine has (`auto`): a trace that nobody asked for is not
// to cost more than this.
enum { TRACE_AUTO_BYTES = 1 << 30 };

struct trace_bounds {
    uint64_t most_bytes;    // the recording ends there; 0: only the disk bounds it
    uint64_t reserve_bytes; // that the disk keeps free for the other logs
    uint64_t held_bytes;    // that perf may still have to write when it is told to end
    bool is_auto;           // most_bytes is TRACE_AUTO_BYTES, which nobody asked for
};

// What so many cores make in that time. A processor makes about a bit an instruction without CYC
// packets, "hundreds of megabytes per second per core" when busy (Linux,
// tools/perf/Documentation/perf-intel-pt.txt); these figures are for cores that are busy a third of
// the time.
uint64_t trace_expected_bytes(enum processor_trace_detail detail, unsigned cores,
                              uint64_t duration_ns);

// Fails with ERROR_INPUT where the expected trace and the reserve do not fit into the free space of
// that folder's disk; says what would. free_bytes: UINT64_MAX: not known.
int trace_bounds_check(const struct trace_bounds *bounds, uint64_t expected_bytes,
                       uint64_t free_bytes, const char *folder, struct error *err);

// Bytes of a recording by now: a file's, or those of the files in its folder.
uint64_t trace_recorded_bytes(const char *path);

// Whether a recording is to end, with so many bytes recorded and so many free: *why is then a
// clause, "it has 1024 MiB, ...".
enum { TRACE_WHY_BYTES = 300 };
bool trace_bounds_reached(const struct trace_bounds *bounds, uint64_t recorded_bytes,
                          uint64_t free_bytes, char why[TRACE_WHY_BYTES]);

#endif
