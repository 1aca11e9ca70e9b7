// SPDX-License-Identifier: MIT
//
// What a run of the engine left: the samples of its requests, its connections, and what it cost.
#ifndef LOADGEN_ENGINE_ENGINE_RESULT_H
#define LOADGEN_ENGINE_ENGINE_RESULT_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/connection.h"
#include "base/error.h"
#include "loadgen/client/connection_counts.h"
#include "loadgen/client/sample_log.h"

enum engine_end {
    ENGINE_COMPLETE,    // every request was answered
    ENGINE_TIMED_OUT,   // the timeout after the schedule's end passed
    ENGINE_BROKEN,      // no connection was left to be tried again (of one thread)
    ENGINE_INTERRUPTED, // SIGINT or SIGTERM
};

// The arrays are the owner's to free with engine_result_free.
struct engine_result {
    enum engine_end end;
    struct sample *samples;         // one per scheduled request, in schedule order
    size_t sample_count;            // of an interrupted run: those that were due by then
    size_t sample_bytes;            // of the mapping
    struct connection *connections; // all that came about, those opened again too; ids 1, 2, ...
    uint32_t connection_count;
    uint32_t connections_at_once; // as asked for
    uint32_t thread_count;
    cpu_set_t cores;   // that the threads were pinned to, in their order; empty: one, unpinned
    uint32_t depth;    // the bound in effect
    bool depth_is_cap; // it came from ENGINE_IN_FLIGHT_CAP
    bool kernel_stamps;
    bool closed_loop;
    bool requests_spent;        // of a closed loop: requests_max ended it
    bool hardware_stamps;       // the NIC was told to stamp; what did come stands in the samples
    uint64_t hardware_error_ns; // how far those may be off, having been converted
    struct error hardware_why;  // why it was not although "auto" would have liked it
    struct error stamps_why;    // why there are none although "auto" would have liked them
    struct error busy_poll_why; // why sockets do not busy-poll although they were to
    uint64_t late_tsc;          // how much after the agreed instant the engine was ready to send
    double tsc_hz;
    uint64_t start_tsc, end_tsc;
    uint64_t paused_tsc;       // of that time, what lay between the rounds of a pool; 0 for one run
    uint64_t delayed_by_depth; // requests that were due while no connection had room
    uint64_t cpu_ns;           // of the threads together, over the run
    uint64_t spin_tsc;         // of that, spent looking and finding nothing
    uint64_t stamps_missing;   // sent requests whose TX stamp did not come
    uint64_t stamps_unknown;   // TX stamps that belong to no request
    struct connection_counts counts;
};

void engine_result_free(struct engine_result *result);

#endif
