// SPDX-License-Identifier: MIT
//
// The offsets of socket calls held against the kernel's events of the same sockets. A hand-off says
// up to where a program had read by then, a transmit up to where it must have written: a call log
// that says otherwise has bytes in the wrong places, or lacks some.
#ifndef ANALYSIS_CALLS_CALL_DOUBTS_H
#define ANALYSIS_CALLS_CALL_DOUBTS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/calls/calls.h"
#include "analysis/timeline/time_source.h"
#include "base/connection.h"
#include "profiler/bpf/event_log.h"

struct call_doubts_input {
    const struct connection *connections; // of the calls; only those with a cookie are looked at
    size_t connection_count;
    const struct event *events;
    size_t event_count;
    const struct connection *sockets; // of the events
    size_t socket_count;
    struct time_source clock; // of the events
};

struct call_doubts {
    uint64_t sockets; // whose calls are not believed to their end
    uint64_t calls;   // taken out
};

// Takes those calls out of *calls that came after the last event with which a socket's calls
// agreed, where a later one contradicts them and few or none agree after it. Bytes in and bytes out
// are looked at each by itself.
// -1: no memory.
int call_doubts_settle(struct application_calls *calls, const struct call_doubts_input *in,
                       struct call_doubts *out);

#endif
