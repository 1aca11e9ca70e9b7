// SPDX-License-Identifier: MIT
//
// What holds a thread up by itself, whatever else its core does: that it sleeps in a system call or
// was stopped, and the page faults it takes.
#ifndef ANALYSIS_TIMELINE_PAUSES_H
#define ANALYSIS_TIMELINE_PAUSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/timeline/span.h"

// What a pause (struct host_timeline.pauses) is called: "lock wait (futex)", "stopped by a signal",
// "blocked in fsync", "blocked in system call 321".
void pause_name(uint32_t pause, char *out, size_t out_bytes);

// What the thread went to sleep in at the end of one of its runs. False: it did not, or nobody
// knows.
bool pause_after(const struct host_timeline *host, const struct thread_run *run, uint32_t *pause);

// How much of a thread's running time [begin_ns, end_ns) went to page faults. The kernel tells when
// one begins, and of most when it has its page: what is left (lists of pages, the return to the
// program) is taken to last PAGE_FAULT_RETURN_NS, or up to the thread's next fault where that comes
// within PAGE_FAULT_STORM_NS, amid many of them PAGE_FAULT_PAUSE_NS (interrupts, a host that finds
// memory for its guest). One of which the kernel tells no more than the beginning is taken to
// last until the thread's next, for PAGE_FAULT_MOST_NS at most. host may be NULL.
enum {
    PAGE_FAULT_RETURN_NS = 1000,
    PAGE_FAULT_STORM_NS = 6000,
    PAGE_FAULT_PAUSE_NS = 100000,
    PAGE_FAULT_MOST_NS = 20000,
};
double page_fault_ns(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                     int64_t end_ns);

#endif
