// SPDX-License-Identifier: MIT
//
// Relates two clocks of a machine while a load lasts: they are read together ten times a second, by
// a thread that sleeps otherwise, and between two such knots the map is a straight line. Conversion
// comes after the load, when every stamp lies between knots. A clock that is set in between makes
// the stamps next to that moment wrong.
#ifndef LOADGEN_CLIENT_CLOCK_FOLLOWER_H
#define LOADGEN_CLIENT_CLOCK_FOLLOWER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

// Both clocks at one moment.
struct clock_knot {
    int64_t from, to;
    uint64_t error; // how far `to` may be off
};
struct clock_knot_array ARRAY_OF(struct clock_knot);

// Reads both clocks together; negative: they cannot be read.
typedef int clock_read_fn(int fd, struct clock_knot *knot);

struct clock_follower {
    clock_read_fn *read;
    int fd;   // for `read`, and closed at the end; -1: none
    int wake; // eventfd that ends the thread; -1: there is none
    pthread_t thread;
    struct clock_knot_array knots;
};

// Takes the first knot and starts the thread. Owns fd, also on failure. what: "the NIC's clock
// /dev/ptp0", for the error.
int clock_follower_begin(struct clock_follower *clock, clock_read_fn *read, int fd,
                         const char *what, struct error *err);
// Takes the last knot and ends the thread. Harmless when there is none.
void clock_follower_stop(struct clock_follower *clock);
void clock_follower_free(struct clock_follower *clock);

// What one clock showed when the other showed `at`: `to` for `from`, or back. Beyond the first and
// last knot the nearest line goes on; 0 without any knot.
int64_t clock_knots_map(const struct clock_knot_array *knots, bool back, int64_t at);

// The worst error of any knot.
uint64_t clock_knots_error(const struct clock_knot_array *knots);

// Reads CLOCK_REALTIME (`from`, ns) and the TSC (`to`, cycles) together, the narrowest of some
// sandwiches.
clock_read_fn clock_read_host;

#endif
