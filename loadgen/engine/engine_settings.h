// SPDX-License-Identifier: MIT
//
// What the engine is asked to do.
#ifndef LOADGEN_ENGINE_ENGINE_SETTINGS_H
#define LOADGEN_ENGINE_ENGINE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadgen/client/client_stamps.h"
#include "loadgen/client/server_address.h"
#include "workloads/protocols/login.h"
#include "workloads/workload.h"

struct schedule_drawer;
struct distribution;
struct tls_settings;

enum {
    ENGINE_IN_FLIGHT_CAP = 65536,       // over all connections, when no depth is asked for
    ENGINE_STAMPS_THINNED = 16,         // then one send call in so many is stamped
    ENGINE_CLOSED_LOOP_ORDER = 1 << 20, // requests that a closed loop repeats in turn
};

struct engine_settings {
    const struct server_address *server; // resolved; a cluster's node, or a sentinel
    bool cluster;                        // the keys are on the nodes of a cluster
    const char *sentinel;                // the server is asked for this master; NULL: it is loaded
    const struct tls_settings *tls;      // NULL: none
    const struct login_words *login;     // what each connection says first; NULL: nothing
    const struct workload *workload;
    uint32_t threads; // with several, each is pinned to a core of its own; 0: one
    bool share_cores; // none is pinned, and there may be more of them than cores
    uint32_t connections;
    uint32_t depth; // in flight per connection; 0: as many as the cap allows
    enum stamp_mode stamps;
    // Of the kernel's TX stamps, by STAMP_MODE_SOFTWARE: one send call in so many has one; 0: each.
    uint32_t stamps_every;
    bool stamps_may_thin; // with STAMP_MODE_AUTO: when the client has hardly any time left
    bool keep_clock; // keeps how CLOCK_REALTIME, in which stamps are, and the TSC related meanwhile
    uint64_t duration_ns; // of the schedule
    // sleep between requests, leaving the core to others, instead of spinning
    bool sleeps;
    // closed loop: how long a connection waits from its last reply to its next requests, in ns;
    // NULL: not at all
    const struct distribution *think;
    bool closed_loop;    // no schedule: its operations and keys are used in turn, over and over
    size_t requests_max; // closed loop: it ends after this many requests, all of which are kept
    // In bounded memory: where the schedule comes from, instead of being drawn at once (NULL: it
    // is), and how many bytes requests may take. A closed loop without a file, whose stamps are not
    // the NIC's, is bounded by the latter alone; 0: it is not.
    struct schedule_drawer *drawer;
    size_t memory_bytes;
    // The file for all samples (NULL: none), which grows with the load; where all fit into memory
    // the result has its journal, for the caller to write. And that for the connections of the
    // beginning, which make something of what a killed load leaves.
    const char *spool, *spool_connections;
    // How long a request may wait for others, to leave on one connection and in one call with them;
    // 0: each leaves when it is due. Of an open loop over a stream, to one server.
    uint64_t batch_ns;
    // How many requests a connection has, which is then closed and opened again; 0: it stays. Not
    // over UDP, nor HTTP/2.
    uint64_t session;
    uint64_t timeout_ns;   // how long to wait for replies after the schedule's end
    uint64_t reconnect_ns; // how long to try to reopen a connection that ended; 0: not at all
    // Called shortly before the schedule begins, with that instant (CLOCK_MONOTONIC); may be NULL.
    void (*announce)(void *context, uint64_t begin_ns);
    void *announce_context;
    // Called when everything is connected, so that several engines can begin together. Returns the
    // CLOCK_MONOTONIC instant to begin at, at least needs_ns from now; 0: do not begin. It may
    // wait. NULL: the engine begins when it is ready.
    uint64_t (*agree)(void *context, uint64_t needs_ns);
    void *agree_context;
    // Called meanwhile when replies took longer than slow_ns since their intended time, with their
    // number so far (context: that of announce); once for all that came since the last call.
    // slow_ns 0: not at all.
    uint64_t slow_ns;
    void (*on_slow)(void *context, uint64_t count);
    struct live_counters
        *live; // one per thread (loadgen/client/connection_counts.h); NULL: no live view
    uint32_t busy_poll_us; // SO_BUSY_POLL of every connection; 0: left alone
};

#endif
