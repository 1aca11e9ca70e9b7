// SPDX-License-Identifier: MIT
//
// Every clock of a host in terms of host time, from a clock log. Between two knots each clock is
// taken as linear in the TSC.
#ifndef PROFILER_CLOCK_CLOCK_MAP_H
#define PROFILER_CLOCK_CLOCK_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profiler/clock/clock_log.h"

// Opaque; immutable once built, so it can be read from many threads.
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

// How long before the first knot (negative) or after the last one all of a log is, whose first and
// last times are given; 0: some of it is not. What is apart is of another run than the map.
int64_t clock_map_apart_ns(const struct clock_map *map, enum host_clock clock, uint64_t first,
                           uint64_t last);

// Cycles per second of the TSC, by the first and last knot.
double clock_map_tsc_hz(const struct clock_map *map);

#endif
