// SPDX-License-Identifier: MIT
//
// The join: what the client knows of a request and what the server's kernel and application saw of
// the same bytes become one lifetime. Connections are matched by their mirrored 5-tuple, messages
// by where their last byte stands in the stream (design §4). Linear in the number of records.
#ifndef ANALYSIS_LIFETIME_JOIN_H
#define ANALYSIS_LIFETIME_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/calls.h"
#include "analysis/lifetime/datagram_losses.h"
#include "analysis/lifetime/holdups.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/lifetime/two_hosts.h"
#include "analysis/timeline/time_source.h"
#include "base/connection.h"
#include "base/error.h"
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
    uint64_t datagrams_lost[DATAGRAM_LOSSES]; // of the requests over UDP without an answer
    struct disorder disorder;
    struct two_hosts hosts; // how their clocks relate, where they are two
};

// Which stages are not divided, of any whole life: of enum undivided, for stage_name().
unsigned join_undivided(const struct join_counts *counts);

// Builds one lifetime per sample, in the samples' order, with states and stages. The caller frees
// *out and *holdups with array_free. Only lack of memory fails.
int join_lifetimes(const struct join_input *input, struct lifetime_array *out,
                   struct holdup_array *holdups, struct join_counts *counts, struct error *err);

#endif
