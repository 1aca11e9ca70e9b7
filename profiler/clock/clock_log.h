// SPDX-License-Identifier: MIT
//
// The clock log: how the clocks of one host relate, as a series of sandwiches
// `rdtsc; clock_gettime; rdtsc`, from which clock_map.h makes a map. File in a run folder:
// <host>/clock.tlog (LOG_CLOCK).
//
// Host time is CLOCK_MONOTONIC_RAW in nanoseconds: it never steps and is never slewed (design §5).
#ifndef PROFILER_CLOCK_CLOCK_LOG_H
#define PROFILER_CLOCK_CLOCK_LOG_H

#include <stdint.h>

enum { CLOCK_LOG_VERSION = 1 };

enum host_clock {
    HOST_CLOCK_TSC = 0,       // cycles (never in a reading: it is the axis of all of them)
    HOST_CLOCK_RAW = 1,       // CLOCK_MONOTONIC_RAW, ns: host time itself
    HOST_CLOCK_MONOTONIC = 2, // CLOCK_MONOTONIC, ns: BPF's ktime
    HOST_CLOCK_REALTIME = 3,  // CLOCK_REALTIME, ns: the kernel's RX and TX software stamps
    HOST_CLOCKS = 4,
};

// The narrowest of some sandwiches taken in a row.
struct clock_reading {
    uint32_t clock; // the clock that was read (enum host_clock)
    uint32_t width; // cycles between the two TSC readings
    uint64_t tsc;   // their midpoint
    int64_t ns;     // the clock's reading
};
_Static_assert(sizeof(struct clock_reading) == 24, "the log format is fixed");

#endif
