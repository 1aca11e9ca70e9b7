// SPDX-License-Identifier: MIT
//
// Which windows of an interval the flight recorder saves. Slow requests whose lives overlap waited
// for the same thing, so they are one stretch; each stretch gets a window of its own, and the
// windows share the interval's requests out, so that no request is saved, and counted, twice.
#ifndef EXPERIMENTS_WATCH_SLOW_WINDOWS_H
#define EXPERIMENTS_WATCH_SLOW_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/answer_times.h"
#include "analysis/lifetime/lifetime.h"
#include "base/array.h"

struct slow_window {
    int64_t from_ns, until_ns; // host time: the requests that were answered after, and until
    double slowest_ns;         // latency of its slowest request; 0: nobody asked
    size_t stretches;          // of slow requests in it
    bool goes_on; // its first slow requests are of the stretch that the latest window so far has
};

struct slow_windows ARRAY_OF(struct slow_window);

// Finds those of the interval from from_ns to until_ns. At most `most` (> 0) are made: the last one
// has all stretches that are left. *ended_ns is when the latest stretch so far had ended, INT64_MIN
// before the first: what is slow and began before it belongs to that stretch, of which the first
// window then is what goes on of it. Returns 0, or -1: no memory.
int slow_windows_find(const struct lifetime_array *lives, double above_ns, int64_t from_ns,
                      int64_t until_ns, size_t most, int64_t *ended_ns, struct slow_windows *out);

// The same of an interval of which no more than this is known of each request.
int slow_windows_of_answers(const struct answer_array *answers, double above_ns, int64_t from_ns,
                            int64_t until_ns, size_t most, int64_t *ended_ns,
                            struct slow_windows *out);

#endif
