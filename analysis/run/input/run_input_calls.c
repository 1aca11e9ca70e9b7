// SPDX-License-Identifier: MIT
#include "analysis/run/input/run_input_calls.h"

#include <string.h>

#include "analysis/calls/streams.h"
#include "analysis/timeline/span.h"
#include "base/connection.h"
#include "base/text.h"

// --- what the servers connected to ---------------------------------------------------------------

static int order_threads(const void *left, const void *right)
{
    return order_of(*(const uint32_t *)left, *(const uint32_t *)right);
}

// The threads that have calls on connections that were accepted; in order.
static int find_serving_threads(const struct run_input *input,
                                const struct connection_index *outgoing, struct index_array *out)
{
    const struct call *calls = input->calls.records;
    for (size_t i = 0; i < input->calls.count; i++) {
        if (calls[i].kind == CALL_WAIT ||
            connection_index_find(outgoing, calls[i].connection) != NO_CONNECTION ||
            (out->count && out->items[out->count - 1] == calls[i].thread))
            continue;
        if (array_push(out, calls[i].thread) < 0)
            return -1;
    }
    array_sort(out, order_threads);
    return 0;
}

static int split_calls(struct run_input *input, const struct connection_index *outgoing,
                       const struct index_array *serving)
{
    const struct call *calls = input->calls.records;
    for (size_t i = 0; i < input->calls.count; i++) {
        bool of_peer = calls[i].kind != CALL_WAIT &&
                       connection_index_find(outgoing, calls[i].connection) != NO_CONNECTION;
        size_t at = array_bound(0, serving->count, k, serving->items[k] < calls[i].thread);
        bool serves = at < serving->count && serving->items[at] == calls[i].thread;
        if (of_peer ? array_push(&input->peer_calls, calls[i]) < 0
                    : (calls[i].kind != CALL_WAIT || serves) &&
                          array_push(&input->accepted_calls, calls[i]) < 0)
            return -1;
    }
    return 0;
}

static int split_connections(struct run_input *input)
{
    const struct connection *all = input->shim_connections.records;
    for (size_t i = 0; i < input->shim_connections.count; i++)
        if (all[i].outgoing ? array_push(&input->peer_connections, all[i]) < 0
                            : array_push(&input->accepted_connections, all[i]) < 0)
            return -1;
    return 0;
}

int run_input_split_calls(struct run_input *input, const char *run_dir, struct error *err)
{
    const struct connection *all = input->shim_connections.records;
    struct connection_index outgoing = {0};
    struct index_array serving = {0};
    bool any = false;
    for (size_t i = 0; i < input->shim_connections.count; i++) {
        any |= all[i].outgoing;
        if (all[i].outgoing > 1)
            return error_set(err, ERROR_INPUT,
                             "%s/server/connections.tlog: connection %u is neither accepted nor "
                             "connected (direction %u): damaged, or of a newer program",
                             run_dir, all[i].id, all[i].outgoing);
    }
    if (!any)
        return 0;
    int result = split_connections(input);
    if (result == 0)
        result = connection_index_init(&outgoing, input->peer_connections.items,
                                       input->peer_connections.count);
    if (result == 0)
        result = find_serving_threads(input, &outgoing, &serving);
    if (result == 0)
        result = split_calls(input, &outgoing, &serving);
    connection_index_fini(&outgoing);
    array_free(&serving);
    if (result < 0)
        return error_set(err, ERROR_FAILED, "no memory for %s socket calls",
                         TEXT_COUNT(input->calls.count));
    input->calls.records = input->accepted_calls.items; // the mapping stays for closing
    input->calls.count = input->accepted_calls.count;
    input->shim_connections.records = input->accepted_connections.items;
    input->shim_connections.count = input->accepted_connections.count;
    return 0;
}

// --- the calls that the kernel's events have -----------------------------------------------------

// Puts the kernel's calls behind the shim's.
static int append_kernel_calls(struct run_input *input)
{
    const struct kernel_calls *kernel = &input->kernel_calls;
    const struct call *calls = input->calls.records;
    const struct connection *connections = input->shim_connections.records;
    // Not yet copied where the shim knows of no peers.
    for (size_t i = input->accepted_calls.count; i < input->calls.count; i++)
        if (array_push(&input->accepted_calls, calls[i]) < 0)
            return -1;
    for (size_t i = input->accepted_connections.count; i < input->shim_connections.count; i++)
        if (array_push(&input->accepted_connections, connections[i]) < 0)
            return -1;
    for (size_t i = 0; i < kernel->calls.count; i++)
        if (array_push(&input->accepted_calls, kernel->calls.items[i]) < 0)
            return -1;
    for (size_t i = 0; i < kernel->connections.count; i++)
        if (array_push(&input->accepted_connections, kernel->connections.items[i]) < 0)
            return -1;
    input->calls_by_kernel = kernel->calls.count;
    input->calls.records = input->accepted_calls.items; // the mapping stays for closing
    input->calls.count = input->accepted_calls.count;
    input->shim_connections.records = input->accepted_connections.items;
    input->shim_connections.count = input->accepted_connections.count;
    return 0;
}

static struct call_log log_of(const struct call *calls, size_t count,
                              const struct connection *connections, size_t connection_count,
                              enum host_clock clock)
{
    return (struct call_log){calls, count, connections, connection_count, clock};
}

// Whether the kernel's events have the calls of the shim's connections, too: not those from before
// it was known that the shim works there. Captures of before say nothing, and have.
static bool has_both(const struct run_input *input)
{
    const char *of = json_string_value(json_object_get(input->capture, "kernel_calls"));
    return !of || strcmp(of, "all") == 0;
}

int run_input_take_kernel_calls(struct run_input *input, struct error *err)
{
    struct kernel_calls *kernel = &input->kernel_calls;
    if (!input->has_events)
        return 0;
    int result = kernel_calls_build(input->events.records, input->events.count,
                                    input->sockets.records, input->sockets.count, kernel);
    if (result == 0 && kernel->connections.count && input->has_calls) {
        struct call_log shims =
            log_of(input->calls.records, input->calls.count, input->shim_connections.records,
                   input->shim_connections.count, HOST_CLOCK_TSC);
        struct call_log kernels =
            log_of(kernel->calls.items, kernel->calls.count, kernel->connections.items,
                   kernel->connections.count, HOST_CLOCK_MONOTONIC);
        if (has_both(input))
            result = call_comparison_build(&shims, &kernels, &input->clock, &input->comparison);
        if (result == 0)
            result = kernel_calls_beside_shim(kernel, shims.calls, shims.call_count,
                                              shims.connections, shims.connection_count);
    }
    if (result == 0 && (kernel->connections.count || kernel->adopted)) {
        result = append_kernel_calls(input);
        input->has_calls = true;
    }
    return result < 0 ? error_set(err, ERROR_FAILED, "no memory for the socket calls of %s events",
                                  TEXT_COUNT(input->events.count))
                      : 0;
}

// --- requests over UDP ---------------------------------------------------------------------------

int run_input_take_datagrams(struct run_input *input, struct error *err)
{
    const struct datagrams_input in = {
        .samples = input->samples.records,
        .sample_count = input->samples.count,
        .clients = input->client_connections.records,
        .client_count = input->client_connections.count,
        .events = input->has_events ? input->events.records : NULL,
        .event_count = input->events.count,
        .sockets = input->sockets.records,
        .socket_count = input->sockets.count,
        .calls = input->has_calls ? input->calls.records : NULL,
        .call_count = input->calls.count,
        .connections = input->shim_connections.records,
        .connection_count = input->shim_connections.count,
        .clock = input->clock,
        .client_clock = input->apart ? &input->client_clock : NULL,
    };
    struct datagrams *out = &input->datagrams;
    if (datagrams_resolve(&in, out) < 0)
        return error_set(err, ERROR_FAILED, "no memory for the datagrams of %s requests",
                         TEXT_COUNT(input->samples.count));
    if (out->any && input->has_events) {
        input->events.records = out->events.items; // the mappings stay for closing
        input->sockets.records = out->sockets.items;
        input->sockets.count = out->sockets.count;
    }
    if (out->any && input->has_calls) {
        input->calls.records = out->calls.items;
        input->shim_connections.records = out->connections.items;
        input->shim_connections.count = out->connections.count;
        array_free(&input->accepted_calls); // they were copied once more
        array_free(&input->accepted_connections);
    }
    return 0;
}
