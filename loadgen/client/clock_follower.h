// SPDX-License-Identifier: MIT
//
// Relates two clocks of a machine while a load lasts: they are read together ten times a second, by
// a thread that sleeps otherwise. Conversion comes after the load, when every stamp lies between
// knots (base/clock_knots.h).
#ifndef LOADGEN_CLIENT_CLOCK_FOLLOWER_H
#define LOADGEN_CLIENT_CLOCK_FOLLOWER_H

#include <pthread.h>

#include "base/clock_knots.h"
#include "base/error.h"

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

// Reads CLOCK_REALTIME (`from`, ns) and the TSC (`to`, cycles) together, the narrowest of some
// sandwiches.
clock_read_fn clock_read_host;

#endif
