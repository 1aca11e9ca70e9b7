// SPDX-License-Identifier: MIT
//
// What a thread does for the kernel's memory in the middle of its own work: reclaim, compaction,
// copying page tables in fork, swapping in, waiting for writeback. It runs and sleeps in it.
#ifndef ANALYSIS_TIMELINE_DETOURS_H
#define ANALYSIS_TIMELINE_DETOURS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/span.h"

// What the detour is called as a cause: "memory reclaim", "memory reclaim (memory limit of web)".
// Returns out.
char *detour_name(const struct host_timeline *host, const struct detour *detour, char *out,
                  size_t out_bytes);

// Completes the detours of a host whose other moments are in order: finds the ends that were not
// recorded, sorts them by thread and time, and cuts inner ones out of outer ones. -1: no memory.
int detours_settle(struct host_timeline *host);

// What a page fault costs on that host, as tried there (0: not known): so long do swapping in and
// page faults last at least; and how much of that comes before its handler. To be called once,
// after host_timeline_build.
void detours_calibrate(struct host_timeline *host, int64_t page_fault_ns, int64_t before_ns);

// The detour that a thread is in at `time_ns`, or NULL. *until_ns: when that ends, or, where there
// is none, when the thread's next begins (INT64_MAX: there is no more).
const struct detour *detour_at(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
                               int64_t *until_ns);

// Whether the thread does what no request asked for, by the word of its own program; *until_ns as
// above. host may be NULL.
bool own_work_at(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
                 int64_t *until_ns);

// The system call that the thread is in, as far as it was seen in one (calls_seen.h), or NULL;
// *until_ns as above. host may be NULL.
const struct detour *call_at(const struct host_timeline *host, uint32_t thread, int64_t time_ns,
                             int64_t *until_ns);

// Whether a process was forked off from the thread's own before `time_ns`: since then it copies
// pages when it writes to them.
bool forked_before(const struct host_timeline *host, uint32_t thread, int64_t time_ns);

#endif
