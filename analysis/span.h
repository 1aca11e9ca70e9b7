// SPDX-License-Identifier: MIT
//
// Spans: intervals of activity on a core, whatever backend saw them. They nest: a span lies wholly
// inside the span of the next smaller depth that is open at its start. Time is host time (ns).
#ifndef ANALYSIS_SPAN_H
#define ANALYSIS_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

enum span_kind {
    SPAN_TASK = 1,    // a thread runs; id: thread
    SPAN_IDLE = 2,    // the idle task runs
    SPAN_IRQ = 3,     // a device interrupt; id: irq number
    SPAN_SOFTIRQ = 4, // id: softirq vector
    SPAN_VECTOR = 5,  // a system vector (timer, IPIs); id: enum event_vector
    SPAN_UNKNOWN = 6, // records were lost here: nobody knows
    SPAN_FUNCTION = 7 // a function call (intel_pt and functions backends)
};

struct span {
    int64_t begin_ns;
    int64_t end_ns;
    uint32_t id;
    uint32_t name; // index into span_names
    uint8_t kind;  // enum span_kind
    uint8_t depth; // 0: outermost (task, idle, unknown)
    uint16_t core;
};

struct span_array ARRAY_OF(struct span);
struct name_array ARRAY_OF(char *);

// One core's activity: spans ordered by begin, an enclosing span before the ones inside it.
struct core_timeline {
    uint16_t core;
    struct span_array spans;
};

struct timeline_array ARRAY_OF(struct core_timeline);

// All cores of one host.
struct host_timeline {
    struct timeline_array cores; // ascending core numbers
    struct name_array names;     // owned; "memcached", "NET_RX", "virtio1-input.0", ...
    uint64_t unpaired;           // exits without entry, or entries without exit: lost records
    uint64_t lost_intervals;     // SPAN_UNKNOWN spans
};

// The timeline of a core, NULL when that core was not captured.
const struct core_timeline *host_timeline_core(const struct host_timeline *host, uint16_t core);
void host_timeline_free(struct host_timeline *host);

// Calls `each` for the disjoint pieces that tile [begin_ns, end_ns) on the core, in order of time;
// each piece names the innermost span that covers it, NULL where none does. Allocates nothing.
typedef void span_piece_visitor(const struct span *innermost, int64_t begin_ns, int64_t end_ns,
                                void *context);
void core_timeline_pieces(const struct core_timeline *timeline, int64_t begin_ns, int64_t end_ns,
                          span_piece_visitor *each, void *context);

#endif
