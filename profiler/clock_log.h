// SPDX-License-Identifier: MIT
//
// The clock log: how the clocks of one host relate, as a series of sandwiches
// `rdtsc; clock_gettime; rdtsc`, and the map that is built from it. File in a run folder:
// <host>/clock.tlog (LOG_CLOCK).
//
// Host time is CLOCK_MONOTONIC_RAW in nanoseconds: it never steps and is never slewed (design §5).
// Between two knots each clock is taken as linear in the TSC.
#ifndef PROFILER_CLOCK_LOG_H
#define PROFILER_CLOCK_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

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
    uint32_t clock; // enum host_clock
    uint32_t width; // cycles between the two TSC readings
    uint64_t tsc;   // their midpoint
    int64_t ns;     // what the clock said
};
_Static_assert(sizeof(struct clock_reading) == 24, "the log format is fixed");

// Takes one knot: the narrowest of `tries` sandwiches of each clock. Fills HOST_CLOCKS - 1
// readings. No allocation; about 0.1 us per try.
void clock_take_knot(struct clock_reading readings[HOST_CLOCKS - 1], unsigned tries);

// The map. Opaque; immutable once built, so it can be read from many threads.
struct clock_map;

// Builds a map from readings in the order they were taken (any mixture of clocks). At least two
// knots of RAW are needed. Readings that contradict each other (TSC running backwards) are
// ERROR_INPUT. The caller frees with clock_map_free.
int clock_map_build(const struct clock_reading *readings, size_t count, struct clock_map **out,
                    struct error *err);

// Reads a LOG_CLOCK file and builds the map.
int clock_map_open(const char *path, struct clock_map **out, struct error *err);
void clock_map_free(struct clock_map *map);

// Converts a reading of a clock to host time (ns). Outside the first and last knot the nearest
// segment is extended. Where the clock stepped between two knots its line is cut, not bent: a value
// that it showed both before and after a step backwards maps to the later time. O(log knots) per
// stretch without a step; allocates nothing. A clock without readings maps to itself, with an
// infinite bound.
int64_t clock_map_to_host(const struct clock_map *map, enum host_clock clock, uint64_t value);

// The bound on the error of converting that clock near that value, ns: half the widths of the
// sandwiches involved, plus what a change of the clock's rate within the segment can bend it, plus,
// for values that may lie on either side of a step, how far apart these sides put them. It holds
// when the rate changes at most once between two knots.
double clock_map_error_ns(const struct clock_map *map, enum host_clock clock, uint64_t value);

// The largest such bound over the whole map, over all clocks.
double clock_map_worst_error_ns(const struct clock_map *map);

// Cycles per second of the TSC, by the first and last knot.
double clock_map_tsc_hz(const struct clock_map *map);

#endif
