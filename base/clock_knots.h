// SPDX-License-Identifier: MIT
//
// What one clock of a machine shows when another does: both are read together now and then, and
// between two such knots the map is a straight line. A clock that is set in between makes the times
// next to that moment wrong.
#ifndef BASE_CLOCK_KNOTS_H
#define BASE_CLOCK_KNOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

// Both clocks at one moment.
struct clock_knot {
    int64_t from, to;
    uint64_t error; // how far `to` may be off
};
struct clock_knot_array ARRAY_OF(struct clock_knot);

// Reads both clocks together; negative: they cannot be read. fd: the one that is a device.
typedef int clock_read_fn(int fd, struct clock_knot *knot);

// What one clock showed when the other showed `at`: `to` for `from`, or back. Beyond the first and
// last knot the nearest line goes on; 0 without any knot.
int64_t clock_knots_map(const struct clock_knot_array *knots, bool back, int64_t at);

// The worst error of any knot.
uint64_t clock_knots_error(const struct clock_knot_array *knots);

#endif
