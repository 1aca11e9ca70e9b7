// SPDX-License-Identifier: MIT
//
// Keeps the clock log of a running capture or load: a knot every interval, taken when polled, into
// memory allocated at the start. When that is full every other knot is dropped and the interval
// doubled, so that the log of a capture of any length covers it from beginning to end.
#ifndef PROFILER_CLOCK_CLOCK_RECORDER_H
#define PROFILER_CLOCK_CLOCK_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profiler/clock/clock_log.h"

struct clock_recorder {
    struct clock_reading *readings; // knot after knot, HOST_CLOCKS - 1 each
    size_t knots;
    size_t capacity; // knots
    uint64_t interval_ns;
    uint64_t next_ns; // CLOCK_MONOTONIC
};

enum {
    CLOCK_RECORDER_INTERVAL_NS = 10 * 1000 * 1000,
    CLOCK_RECORDER_KNOTS = 1 << 15, // 5 minutes of them before the first doubling; 2.3 MB
};

// Sets memory aside and takes the first knot. capacity: in knots, at least 4.
int clock_recorder_start(struct clock_recorder *recorder, uint64_t interval_ns, size_t capacity,
                         struct error *err);

// Takes a knot (some microseconds) if one is due. Returns the ns until the next is due.
uint64_t clock_recorder_poll(struct clock_recorder *recorder);

// Takes a knot now, due or not: times after the last knot can only be converted by extrapolation.
void clock_recorder_take(struct clock_recorder *recorder);

// Takes two knots, each after CLOCK_RECORDER_SETTLE_MS. With these at the begin and before the end,
// a change of a clock's rate near either end can be located: that takes two segments on each side
// of it.
enum { CLOCK_RECORDER_SETTLE_MS = 20 };
void clock_recorder_settle(struct clock_recorder *recorder);

// Takes a last knot, unless the latest is hardly older (knots that close have no useful rate
// between them), and writes the log. May be called again to write it elsewhere.
int clock_recorder_write(struct clock_recorder *recorder, const char *path, struct error *err);

void clock_recorder_free(struct clock_recorder *recorder);

#endif
