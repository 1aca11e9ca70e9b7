// SPDX-License-Identifier: MIT
//
// M(n) and M(h) by the processor's trace, held against those of the kernel's events: the same
// messages' traced calls of sock_def_readable, and of tcp_v4_rcv or tcp_v6_rcv around them. Both
// say when the same happened, by two clocks and from two places in the kernel; how far they are
// apart is how far one can stand in for the other, and a trace whose clock is wrong, by up to a
// millisecond, shows here, however many messages there are at once.
#ifndef ANALYSIS_RUN_TRACE_STAMPS_H
#define ANALYSIS_RUN_TRACE_STAMPS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/lifetime.h"
#include "analysis/timeline/span.h"

struct stamp_difference {
    uint64_t compared;
    double p50_ns; // of the trace's time less the events'
    double least_ns, most_ns;
};

struct trace_stamps {
    struct stamp_difference arrival, handoff;
    uint64_t unseen; // hand-offs within what was traced, without such a call a millisecond around
};

// The functions are in the server's timeline already. -1: no memory.
int trace_stamps_compare(const struct host_timeline *server, const struct lifetime *lives,
                         size_t count, struct trace_stamps *out);

json_t *trace_stamps_json(const struct trace_stamps *stamps); // null where nothing was compared

#endif
