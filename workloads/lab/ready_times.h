// SPDX-License-Identifier: MIT
//
// When a thread could have run and did not: it was woken, or put aside for another, and had no core
// yet. From the kernel's own records of its threads (perf_event_open(2): sched:sched_waking or,
// where there is none, sched:sched_wakeup on each core, and PERF_RECORD_SWITCH), which owe nothing
// to what a capture records.
//
// The kernel's sum of it (/proc/PID/schedstat) does not do: where the core is idle it begins when
// that has come back to take the thread, and the clock that it is read from stands still until the
// thread runs (kernel/sched/core.c, rq_clock_skip_update), so that it counts nothing of what takes
// a virtual machine 20 to 100 us each time.
#ifndef WORKLOADS_LAB_READY_TIMES_H
#define WORKLOADS_LAB_READY_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ready_span {
    int64_t out_ns;   // since when it had not run: until begin_ns it waited for something
    int64_t begin_ns; // 0: of its waking there is no record
    int64_t end_ns;   // all of CLOCK_MONOTONIC_RAW
};

struct ready_times;

// Begins to record of the calling thread; the first in a while takes milliseconds. To be freed with
// ready_times_free. NULL: it takes root, and a kernel from 5.2.
struct ready_times *ready_times_new(struct error *err);
void ready_times_free(struct ready_times *times);

// Forgets what has been until now; by the thread itself, as ready_times_take. NULL is allowed.
void ready_times_skip(struct ready_times *times);

// When it was ready since the last call, in order; of more than `most` the first. 0 of NULL.
// whole: whether none was left out, and the kernel had room for all of its records.
size_t ready_times_take(struct ready_times *times, struct ready_span *spans, size_t most,
                        bool *whole);

#endif
