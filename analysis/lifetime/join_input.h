// SPDX-License-Identifier: MIT
//
// What a join (join.h) is made from, and what it counts on the way.
#ifndef ANALYSIS_LIFETIME_JOIN_INPUT_H
#define ANALYSIS_LIFETIME_JOIN_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/calls.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/lifetime/two_hosts.h"
#include "analysis/timeline/time_source.h"
#include "base/connection.h"
#include "loadgen/client/sample_log.h"
#include "profiler/bpf/event_log.h"

struct join_input {
    const struct sample *samples;
    size_t sample_count;
    const struct connection *client_connections;
    size_t client_connection_count;
    const struct event *events; // NULL: no capture
    size_t event_count;
    const struct connection *sockets; // the kernel's view of the connections
    size_t socket_count;
    const struct application_calls *calls; // NULL: no shim
    const struct connection *shim_connections;
    size_t shim_connection_count;
    struct time_source clock; // of the server's host, and of the client's if that is the same
    const struct time_source *client_clock; // of the client's host; NULL: the same
};

struct join_counts {
#define JOIN_COUNT(name, means) uint64_t name;
#include "analysis/lifetime/lifetimes.tbl.h"
    struct disorder disorder;
    struct two_hosts hosts; // how their clocks relate, where they are two
};

#endif
