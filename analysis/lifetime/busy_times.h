// SPDX-License-Identifier: MIT
//
// When each thread of the server had a request in its hands, told from its socket calls: from the
// receive call to the call that sends the reply. A connection of anybody counts, not only the
// load's; of the load's it is also known when one thread receives and another one replies, and when
// the thread did something else in between.
#ifndef ANALYSIS_LIFETIME_BUSY_TIMES_H
#define ANALYSIS_LIFETIME_BUSY_TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/calls/calls.h"
#include "analysis/lifetime/lifetime.h"
#include "base/array.h"

struct busy_time {
    int64_t begin_ns; // entry of the receive call, in which the thread may have slept until there
    int64_t had_ns;   // was a request: its exit
    int64_t end_ns;   // exit of the send call
    uint32_t thread;
};
// By thread, then by begin; those of a thread are disjoint.
struct busy_time_array ARRAY_OF(struct busy_time);

// -1: no memory. The caller frees with array_free either way.
int busy_times_build(struct busy_time_array *out, const struct application_calls *calls,
                     const struct lifetime *lifetimes, size_t count);

// Those of one thread; NULL and 0 when there are none.
const struct busy_time *busy_times_of(const struct busy_time_array *all, uint32_t thread,
                                      size_t *count);

#endif
