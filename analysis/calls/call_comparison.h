// SPDX-License-Identifier: MIT
//
// The shim's record of a server's socket calls held against the kernel's, where a run has both: by
// where a call's last byte stands in the stream.
#ifndef ANALYSIS_CALLS_CALL_COMPARISON_H
#define ANALYSIS_CALLS_CALL_COMPARISON_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/calls/kernel_calls.h"
#include "analysis/timeline/time_source.h"

// By how much the shim's time lies after the kernel's.
struct call_difference {
    uint64_t both;        // calls that both have
    uint64_t other_bytes; // of these, with another number of bytes
    uint64_t shim_only, kernel_only;
    double median_ns, p99_ns, least_ns, most_ns; // NAN where `both` is 0
};

struct call_comparison {
    uint64_t connections;            // that both know, and whose ends only one of each has
    struct call_difference receives; // of when a receive call returned: M(a)
    struct call_difference sends;    // of when a send call began: the reply
};

struct call_log {
    const struct call *calls;
    size_t call_count;
    const struct connection *connections;
    size_t connection_count;
    enum host_clock clock; // of the calls' times
};

// What lies before the first or after the last call that both logs have of a connection and
// direction is left out: one of them may have begun later, or ended before. -1: no memory.
int call_comparison_build(const struct call_log *shim, const struct call_log *kernel,
                          const struct time_source *clock, struct call_comparison *out);

#endif
