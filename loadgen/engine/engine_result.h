// SPDX-License-Identifier: MIT
//
// The result of a load by the engine: the samples of its requests, its connections, and what it
// cost.
#ifndef LOADGEN_ENGINE_ENGINE_RESULT_H
#define LOADGEN_ENGINE_ENGINE_RESULT_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/connection.h"
#include "base/error.h"
#include "base/log_file.h"
#include "loadgen/client/clock_follower.h"
#include "loadgen/client/connection_counts.h"
#include "loadgen/client/sample_log.h"
#include "loadgen/engine/sample_totals.h"

enum engine_end {
    ENGINE_COMPLETE,    // every request was answered
    ENGINE_TIMED_OUT,   // the timeout after the schedule's end expired
    ENGINE_BROKEN,      // all connections (of one thread) were given up
    ENGINE_INTERRUPTED, // SIGINT or SIGTERM
};

// The longest time in which a thread neither ran nor asked to wait, and when it began. Zeroed:
// none.
struct standstill {
    uint64_t lasted_tsc, at_tsc;
};

static inline void standstill_note(struct standstill *longest, struct standstill other)
{
    if (other.lasted_tsc > longest->lasted_tsc)
        *longest = other;
}

// The owner frees the arrays with engine_result_free.
struct engine_result {
    enum engine_end end;
    struct sample *samples; // one per scheduled request, in schedule order
    uint32_t fanout;        // so many in a row are one logical request; 1 or 0: each is
    size_t sample_count;    // of an interrupted load: those that were due by then
    size_t sample_bytes;    // of the mapping
    // In bounded memory: of all samples, while those above are what is kept of them; else NULL.
    struct sample_totals *totals;
    // With settings->spool, where all fit into memory: the file, open, for log_writer_rewrite.
    // NULL: none.
    struct log_writer *journal;
    struct connection *connections; // all that were established, reconnects included; ids 1, 2, ...
    uint32_t connection_count;
    uint32_t connections_at_once; // as asked for
    uint32_t thread_count;
    // cores of the threads, in their order; empty: one thread that was not pinned
    cpu_set_t cores;
    uint32_t depth;    // the bound in effect
    bool depth_is_cap; // that bound is ENGINE_IN_FLIGHT_CAP
    bool kernel_stamps;
    // One send call in so many has a TX stamp, from thinned_tsc on (0: from the begin); 0: each
    // has.
    uint32_t stamps_every;
    uint64_t thinned_tsc;
    bool closed_loop;
    bool requests_spent; // closed loop: it ended because requests_max were put
    // the NIC was told to stamp; the stamps that came are in the samples
    bool hardware_stamps;
    uint64_t hardware_error_ns;    // how far those stamps may be off after their conversion
    struct error hardware_why;     // why it was not, if "auto" tried it
    struct error stamps_why;       // why there are none, if "auto" tried them
    struct error busy_poll_why;    // why sockets do not busy-poll as asked
    struct clock_knot_array clock; // CLOCK_REALTIME to TSC, with keep_clock
    uint64_t late_tsc;             // how long after the agreed instant the engine was ready to send
    double tsc_hz;
    uint64_t start_tsc, end_tsc;
    // part of that time that lay between the rounds of a pool; 0 for a single load
    uint64_t paused_tsc;
    uint64_t delayed_by_depth; // requests that were due while no connection had room
    uint64_t cpu_ns;           // of the threads together, over the run
    uint64_t spin_tsc;         // part of that time in which threads looked for work and found none
    uint64_t asleep_tsc;       // part of spin_tsc in which they slept
    struct standstill standstill;
    uint64_t stamps_missing; // sent requests whose TX stamp did not come
    struct connection_counts counts;
    uint32_t nodes; // that were known at the end; 0: there is one server
};

// Memory for that many samples; sample_count stays as it is.
int engine_result_take_samples(struct engine_result *result, size_t count, struct error *err);

// Whether requests waited for a connection because ENGINE_IN_FLIGHT_CAP lets no more be in flight,
// and not because a server took no more of them.
bool engine_result_hit_cap(const struct engine_result *result);

// When the first failover was, in seconds from the load's start; only where there was one.
double engine_result_first_failover_s(const struct engine_result *result);

void engine_result_free(struct engine_result *result);

#endif
