// SPDX-License-Identifier: MIT
//
// The open-loop engine: sends every request at its scheduled instant, or as soon after as it can,
// and never waits for a reply to do so (design §7).
//
// Its threads (loadgen/engine/engine_worker.h) spin, unless told to sleep: on the TSC when the next
// request is near, else on the sockets' readiness (libevent). Which connection: the next in turn
// that has room; when none has, requests wait in schedule order and their lateness is recorded.
// Those that wait together share send calls. Nothing is allocated, and no page touched for the
// first time, after the start. The thread that calls waits for them, and for signals.
//
// Asked for as much as the server answers (closed_loop), it is no open loop: each connection sends
// as many requests as its depth allows, and the next when all of them are answered. A request's
// intended time is then when it was put, and its latency that of a client which waits; the result
// says so. This finds a server's maximum; pages for samples are touched on the way.
#ifndef LOADGEN_ENGINE_ENGINE_H
#define LOADGEN_ENGINE_ENGINE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/connection.h"
#include "base/error.h"
#include "loadgen/client/client_connection.h"
#include "loadgen/client/client_stamps.h"
#include "loadgen/client/sample_log.h"
#include "loadgen/client/server_address.h"
#include "loadgen/engine/schedule.h"
#include "workloads/workload.h"

enum { ENGINE_IN_FLIGHT_CAP = 65536 }; // over all connections, when no depth is asked for

struct engine_settings {
    const struct server_address *server; // resolved
    const struct workload *workload;
    uint32_t threads; // each pinned to a core of its own when there are several; 0: one
    uint32_t connections;
    uint32_t depth; // in flight per connection; 0: as many as the cap allows
    enum stamp_mode stamps;
    uint64_t duration_ns;  // of the schedule
    bool sleeps;           // between requests, leaving the core to others, instead of spinning
    bool closed_loop;      // no schedule: its operations and keys are asked in turn, over and over
    size_t requests_max;   // of a closed loop: it ends when so many were put, for want of memory
    uint64_t timeout_ns;   // how long after the schedule's end replies are waited for
    uint64_t reconnect_ns; // how long a connection that ended is tried again; 0: not at all
    // Told, shortly before it comes, when the schedule begins (CLOCK_MONOTONIC); NULL: nobody asks.
    void (*announce)(void *context, uint64_t begin_ns);
    void *announce_context;
    // Asked when everything is connected, so that several engines can begin together: returns the
    // CLOCK_MONOTONIC instant to begin at, at least needs_ns from now; 0: do not begin. It may
    // wait. NULL: the engine begins when it is ready.
    uint64_t (*agree)(void *context, uint64_t needs_ns);
    void *agree_context;
    struct live_counters
        *live; // one for each thread (loadgen/client/live_counters.h); NULL: nobody looks
    uint32_t busy_poll_us; // SO_BUSY_POLL of every connection; 0: left alone
};

enum engine_end {
    ENGINE_COMPLETE,    // every request was answered
    ENGINE_TIMED_OUT,   // the timeout after the schedule's end passed
    ENGINE_BROKEN,      // no connection was left to be tried again (of one thread)
    ENGINE_INTERRUPTED, // SIGINT or SIGTERM
};

// What a run left. The arrays are the caller's to free with engine_result_free.
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

enum { ENGINE_CLOSED_LOOP_ORDER = 1 << 20 }; // requests that a closed loop asks in turn

// Connects, waits for the start, runs, and collects. Fails only when the run could not begin.
// While it runs, SIGINT and SIGTERM end it early and cleanly.
int engine_run(const struct engine_settings *settings, const struct schedule *schedule,
               struct engine_result *result, struct error *err);
void engine_result_free(struct engine_result *result);

#endif
