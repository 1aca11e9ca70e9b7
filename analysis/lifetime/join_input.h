// SPDX-License-Identifier: MIT
//
// What the join is given, and what it counts on its way.
#ifndef ANALYSIS_LIFETIME_JOIN_INPUT_H
#define ANALYSIS_LIFETIME_JOIN_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/calls/calls.h"
#include "analysis/lifetime/datagram_losses.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/lifetime/two_hosts.h"
#include "analysis/timeline/time_source.h"
#include "base/connection.h"
#include "loadgen/client/sample_log.h"
#include "profiler/bpf/event_log.h"

struct join_input {
    const struct sample *samples;
    // Of the samples' TSC fields: HOST_CLOCK_RAW where they are made up from what the server's
    // host recorded, and hold host time.
    enum host_clock sample_clock;
    // Nobody knows the clients (turns.h): a life is what the server's host sees of it, from M(n) to
    // server TX; nothing lies before and nothing after.
    bool without_client;
    size_t sample_count;
    const struct connection *client_connections;
    size_t client_connection_count;
    const struct event *events; // NULL: no capture
    size_t event_count;
    bool traced; // they are a processor's trace's: what they do not show, nothing could take
    const struct connection *sockets; // the kernel's view of the connections
    size_t socket_count;
    const struct application_calls *calls; // NULL: no shim
    const struct connection *shim_connections;
    size_t shim_connection_count;
    // Ports of servers whose network stack is their own (VMA, DPDK): what the kernel does not see
    // of their connections is not missing.
    const uint16_t *own_stacks;
    size_t own_stack_count;
    uint64_t timeout_ns;      // over UDP: for how long each reply was waited for; 0: not known
    struct time_source clock; // of the server's host, and of the client's if that is the same
    const struct time_source *client_clock; // of the client's host; NULL: the same
};

struct join_counts {
#define JOIN_COUNT(name, means) uint64_t name;
#include "analysis/lifetime/lifetimes.tbl.h"
    struct datagram_losses datagrams_lost;
    struct disorder disorder;
    struct two_hosts hosts; // how their clocks relate, where they are two
};

#endif
