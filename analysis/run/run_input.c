// SPDX-License-Identifier: MIT
#include "analysis/run/run_input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/lifetime/streams.h"
#include "analysis/run/run_path.h"
#include "analysis/timeline/span.h"
#include "base/connection.h"
#include "base/histogram.h"
#include "base/input_file.h"
#include "base/text.h"
#include "loadgen/client/sample_log.h"
#include "profiler/bpf/event_log.h"
#include "shim/message_log.h"

enum { CONNECTIONS_VERSION = 1, LOAD_FILE_BYTES = LOAD_FOLDER_BYTES + 32 };

struct moments ARRAY_OF(int64_t); // host time

static bool is_there(const char *run_dir, const char *name)
{
    char path[RUN_FILE_PATH_BYTES];
    run_path(path, run_dir, name);
    return access(path, F_OK) == 0;
}

static int open_log(struct log_reader *reader, const char *run_dir, const char *name,
                    enum log_kind kind, uint32_t version, size_t record_bytes, struct error *err)
{
    char path[RUN_FILE_PATH_BYTES];
    run_path(path, run_dir, name);
    return log_reader_open(reader, path, kind, version, record_bytes, err);
}

static int open_connections(struct log_reader *reader, const char *run_dir, const char *name,
                            struct error *err)
{
    return open_log(reader, run_dir, name, LOG_CONNECTIONS, CONNECTIONS_VERSION,
                    sizeof(struct connection), err);
}

static int read_json(json_t **out, const char *run_dir, const char *name, struct error *err)
{
    char path[RUN_FILE_PATH_BYTES];
    json_error_t problem;
    run_path(path, run_dir, name);
    if (access(path, F_OK) != 0)
        return 0;
    *out = input_json(path, &problem);
    if (!*out)
        return error_set(err, ERROR_INPUT, "%s:%d: not valid JSON: %s; " INPUT_COPY_AGAIN, path,
                         problem.line, problem.text);
    if (json_is_object(*out))
        return 0;
    return error_set(err, ERROR_INPUT, "%s: a JSON object was expected; " INPUT_COPY_AGAIN, path);
}

// What the cores of the load's host did, where those of the server's capture are not its.
static int open_client_events(struct run_input *input, const char *run_dir, struct error *err)
{
    struct run_segments *segments = &input->client_segments;
    int result = run_segments_read(segments, input->client_capture, run_dir, "client",
                                   run_segments_affordable(), err);
    if (result < 0)
        return result;
    input->has_client_events = segments->any || is_there(run_dir, "client/events.tlog");
    if (!input->has_client_events)
        return 0;
    return segments->any ? run_segments_open_events(segments, run_dir, &input->client_events, err)
                         : open_log(&input->client_events, run_dir, "client/events.tlog",
                                    LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), err);
}

// A file of the load that is looked at: "client/samples.tlog".
static char *load_file(const struct run_input *input, const char *file, char out[LOAD_FILE_BYTES])
{
    snprintf(out, LOAD_FILE_BYTES, "%s/%s", input->folder, file);
    return out;
}

// A load that was killed leaves the samples that it had written, under no name yet.
static int rescue_samples(const struct run_input *input, const char *run_dir, struct error *err)
{
    char path[RUN_FILE_PATH_BYTES], name[LOAD_FILE_BYTES];
    run_path(path, run_dir, load_file(input, "samples.tlog", name));
    if (access(path, F_OK) == 0 || !is_there(run_dir, load_file(input, "connections.tlog", name)))
        return 0;
    return log_rescue(path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof(struct sample), err);
}

static int open_client(struct run_input *input, const char *run_dir, struct error *err)
{
    char samples[LOAD_FILE_BYTES], connections[LOAD_FILE_BYTES];
    load_file(input, "samples.tlog", samples);
    load_file(input, "connections.tlog", connections);
    if (rescue_samples(input, run_dir, err) < 0)
        return -(int)err->kind;
    input->without_client = !is_there(run_dir, samples);
    if (input->without_client && !input->experiment && input->capture)
        return 0;
    if (input->without_client)
        return error_set(err, ERROR_INPUT,
                         "%s: no %s in it: neither the folder of a finished run nor a capture",
                         run_dir, samples);
    int result = open_log(&input->samples, run_dir, samples, LOG_SAMPLES, SAMPLE_LOG_VERSION,
                          sizeof(struct sample), err);
    if (result == 0)
        result = open_connections(&input->client_connections, run_dir, connections, err);
    if (result == 0 && input->samples.count == 0)
        result = error_set(err, ERROR_INPUT, "%s/%s: no request in it: nothing to analyze", run_dir,
                           samples);
    if (result == 0)
        result = run_loads_open(&input->other_loads, run_dir, err);
    return result == 0 ? open_client_events(input, run_dir, err) : result;
}

static int open_server(struct run_input *input, const char *run_dir, struct error *err)
{
    int result = 0;
    bool pieces = input->segments.any;
    input->has_events = is_there(run_dir, pieces ? "server/sockets.tlog" : "server/events.tlog");
    input->has_calls = is_there(run_dir, pieces ? "server/connections.tlog" : "server/calls.tlog");
    if (input->has_events) {
        result = pieces ? run_segments_open_events(&input->segments, run_dir, &input->events, err)
                        : open_log(&input->events, run_dir, "server/events.tlog", LOG_EVENTS,
                                   EVENT_LOG_VERSION, sizeof(struct event), err);
        if (result == 0)
            result =
                pieces ? run_segments_open_sockets(&input->segments, run_dir, &input->sockets, err)
                       : open_connections(&input->sockets, run_dir, "server/sockets.tlog", err);
    }
    if (result == 0 && input->has_calls) {
        result = pieces ? run_segments_open_calls(&input->segments, run_dir, &input->calls, err)
                        : open_log(&input->calls, run_dir, "server/calls.tlog", LOG_CALLS,
                                   MESSAGE_LOG_VERSION, sizeof(struct call), err);
        if (result == 0)
            result =
                open_connections(&input->shim_connections, run_dir, "server/connections.tlog", err);
    }
    return result;
}

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

// The shim's logs hold both what the servers accepted and what they connected to. A server's
// requests come over the former alone; the latter are kept apart.
static int split_by_direction(struct run_input *input, const char *run_dir, struct error *err)
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

// Takes the calls that the kernel's events have of connections that the shim does not know, and
// compares those of the others.
static int take_kernel_calls(struct run_input *input, struct error *err)
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

// Where the load came over UDP: makes a connection of each client in the server's logs.
static int take_datagrams(struct run_input *input, struct error *err)
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

// --- clocks --------------------------------------------------------------------------------------

static int64_t convert_by_map(const void *context, enum host_clock clock, uint64_t value)
{
    return clock_map_to_host(context, clock, value);
}

static const char no_server_clock[] = "without it no stamp of this run can be placed in time; "
                                      "capture the run with `taillight capture`";

// Opens the clocks of one side. boot_id: the boot that they belong to.
static int open_clock(const char *run_dir, const char *name, const char *mend, char boot_id[40],
                      struct clock_map **map, struct time_source *source, struct error *err)
{
    char path[RUN_FILE_PATH_BYTES];
    struct log_reader log = {0};
    run_path(path, run_dir, name);
    if (access(path, F_OK) != 0)
        return error_set(err, ERROR_INPUT, "%s: no such file: %s", path, mend);
    int result = open_log(&log, run_dir, name, LOG_CLOCK, CLOCK_LOG_VERSION,
                          sizeof(struct clock_reading), err);
    if (result < 0)
        return result;
    memcpy(boot_id, log.header.boot_id, sizeof log.header.boot_id);
    log_reader_close(&log);
    result = clock_map_open(path, map, err);
    if (result == 0)
        *source = (struct time_source){
            .convert = convert_by_map, .context = *map, .error_ns = clock_map_worst_error_ns(*map)};
    return result;
}

// A log must come from the same boot as the clock log beside it: clocks restart with every boot.
static int check_boot(const char *run_dir, const char *name, const struct log_reader *log,
                      const char boot_id[40], struct error *err)
{
    if (memcmp(log->header.boot_id, boot_id, sizeof log->header.boot_id) == 0)
        return 0;
    return error_set(err, ERROR_INPUT,
                     "%s: %s is of boot %.36s and the clock.tlog beside it of boot %.36s: nothing "
                     "relates their clocks; take logs of one capture, without a reboot in between",
                     run_dir, name, log->header.boot_id, boot_id);
}

// A log that lies wholly before or behind the clock log beside it is of another run than that:
// clocks drift, and its times would be those of a line that is extended for as long.
static int check_moments(const char *run_dir, const char *name, const char *side,
                         const struct clock_map *map, enum host_clock clock, uint64_t first,
                         uint64_t last, struct error *err)
{
    const int64_t apart = clock_map_apart_ns(map, clock, first, last);
    if (apart == 0)
        return 0;
    return error_set(err, ERROR_INPUT,
                     "%s: %s/clock.tlog is of another run than %s, all of which is at least %s %s "
                     "it: copy both from where they were",
                     run_dir, side, name, TEXT_INSTANT((double)llabs(apart)),
                     apart < 0 ? "before" : "after");
}

// Of each log that there is two moments, by the clocks of the machine that it is from.
static int check_all_moments(const struct run_input *input, const char *run_dir, struct error *err)
{
    char name[LOAD_FILE_BYTES];
    const struct sample *samples = input->samples.records;
    const struct event *events = input->events.records;
    const struct call *calls = input->calls.records;
    const bool apart = input->apart;
    int result = 0;
    if (!input->without_client && input->samples.count)
        result = check_moments(
            run_dir, load_file(input, "samples.tlog", name), apart ? "client" : "server",
            apart ? input->client_clock_map : input->clock_map, HOST_CLOCK_TSC,
            samples[0].intended_tsc, samples[input->samples.count - 1].intended_tsc, err);
    if (result == 0 && input->has_events && input->events.count)
        result = check_moments(run_dir, "server/events.tlog", "server", input->clock_map,
                               HOST_CLOCK_MONOTONIC, events[0].time,
                               events[input->events.count - 1].time, err);
    if (result == 0 && input->has_calls && input->calls.count)
        result =
            check_moments(run_dir, "server/calls.tlog", "server", input->clock_map, HOST_CLOCK_TSC,
                          calls[0].entry_tsc, calls[input->calls.count - 1].entry_tsc, err);
    return result;
}

static int open_clocks(struct run_input *input, const char *run_dir, struct error *err)
{
    char server[40], client[40], name[LOAD_FILE_BYTES];
    int result = open_clock(run_dir, "server/clock.tlog", no_server_clock, server,
                            &input->clock_map, &input->clock, err);
    if (result == 0)
        memcpy(input->boot_id, server, sizeof input->boot_id);
    if (result == 0 && input->has_events)
        result = check_boot(run_dir, "server/events.tlog", &input->events, server, err);
    if (result == 0 && input->has_calls)
        result = check_boot(run_dir, "server/calls.tlog", &input->calls, server, err);
    if (result < 0 || input->without_client)
        return result;
    if (memcmp(input->samples.header.boot_id, server, sizeof server) == 0)
        return input->has_client_events
                   ? check_boot(run_dir, "client/events.tlog", &input->client_events, server, err)
                   : 0;
    input->apart = true;
    result = open_clock(run_dir, "client/clock.tlog",
                        "client and server are of different boots, and the client's stamps cannot "
                        "be placed in time without it; on the client's host run `taillight capture "
                        "--backend none --no-events --out DIR` beside the load and take clock.tlog "
                        "from there",
                        client, &input->client_clock_map, &input->client_clock, err);
    if (result == 0)
        memcpy(input->client_boot_id, client, sizeof input->client_boot_id);
    if (result == 0 && input->has_client_events)
        result = check_boot(run_dir, "client/events.tlog", &input->client_events, client, err);
    return result < 0 ? result
                      : check_boot(run_dir, load_file(input, "samples.tlog", name), &input->samples,
                                   client, err);
}

// All loads come from one machine.
static int check_other_loads(const struct run_input *input, const char *run_dir, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < input->other_loads.count && result == 0; i++) {
        const struct run_load *load = &input->other_loads.items[i];
        char name[LOAD_FILE_BYTES];
        snprintf(name, sizeof name, "%s/samples.tlog", load->folder);
        if (load->samples.records)
            result = check_boot(run_dir, name, &load->samples, input->samples.header.boot_id, err);
    }
    return result;
}

// Latencies are slow from here on: of the slowest hundredth the least, in ticks.
static int slow_latency(const struct sample *samples, size_t count, uint64_t *slow,
                        struct error *err)
{
    struct histogram *latencies = calloc(1, sizeof *latencies);
    if (!latencies)
        return error_set(err, ERROR_FAILED, "no memory for a histogram");
    for (size_t i = 0; i < count; i++)
        if (sample_is_answered(&samples[i]))
            histogram_record(latencies, samples[i].reply_tsc - samples[i].intended_tsc);
        else
            histogram_record_infinite(latencies);
    const double quantile = histogram_quantile(latencies, 0.99);
    *slow = isfinite(quantile) ? histogram_lowest(histogram_slot((uint64_t)quantile)) : UINT64_MAX;
    free(latencies);
    return 0;
}

// When the slowest hundredth of all requests were due, by the host's clock.
static int find_slowest(const struct run_input *input, const struct time_source *clock,
                        struct moments *out, struct error *err)
{
    const struct sample *samples = input->samples.records;
    uint64_t slow = 0;
    int result = slow_latency(samples, input->samples.count, &slow, err);
    for (size_t i = 0; i < input->samples.count && result == 0; i++) {
        if (sample_is_answered(&samples[i]) &&
            samples[i].reply_tsc - samples[i].intended_tsc < slow)
            continue;
        if (array_push(out,
                       clock->convert(clock->context, HOST_CLOCK_TSC, samples[i].intended_tsc)) < 0)
            result = error_set(err, ERROR_FAILED, "no memory for the slowest requests");
    }
    return result;
}

// Of a capture that is too long for one analysis, the part with most of the slowest requests of the
// whole load is looked at. Client and server on different machines have no clock in common by which
// to find it.
static int choose_segments(struct run_input *input, const char *run_dir, struct error *err)
{
    char boot_id[40];
    struct clock_map *map = NULL;
    struct time_source clock;
    struct moments slowest = {0};
    if (input->segments.left_out == 0 || input->segments.ends.count == 0 || input->without_client)
        return 0;
    int result =
        open_clock(run_dir, "server/clock.tlog", no_server_clock, boot_id, &map, &clock, err);
    if (result < 0)
        return result;
    if (memcmp(input->samples.header.boot_id, boot_id, sizeof boot_id) == 0)
        result = find_slowest(input, &clock, &slowest, err);
    if (result == 0 && slowest.count) {
        input->slowest = slowest.count;
        input->slowest_there = run_segments_choose(&input->segments, slowest.items, slowest.count);
    }
    array_free(&slowest);
    clock_map_free(map);
    return result;
}

// When the first of the events was recorded, by the host's clock.
static int64_t begin_of_events(const struct run_input *input)
{
    const struct event *events = input->events.records;
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < input->events.count; i++)
        first = events[i].time < first ? events[i].time : first;
    return input->clock.convert(input->clock.context, HOST_CLOCK_MONOTONIC, first);
}

static int64_t intended_ns(const struct run_input *input, size_t i)
{
    const struct sample *samples = input->samples.records;
    return input->clock.convert(input->clock.context, HOST_CLOCK_TSC, samples[i].intended_tsc);
}

static void say_where_load_ends(struct run_input *input)
{
    const struct time_source *clock = input->apart ? &input->client_clock : &input->clock;
    const struct sample *samples = input->samples.records;
    const size_t count = input->samples.count;
    const int64_t ns =
        clock->convert(clock->context, HOST_CLOCK_TSC, samples[count - 1].intended_tsc) -
        clock->convert(clock->context, HOST_CLOCK_TSC, samples[0].intended_tsc);
    text_append(input->ends, sizeof input->ends,
                "%sThe load was killed: what it had written ends %s after its begin, with %s "
                "requests.",
                input->ends[0] ? " " : "", TEXT_INSTANT((double)ns), TEXT_COUNT(count));
}

static void say_where_it_ends(struct run_input *input, size_t requests, size_t all)
{
    const struct run_segments *segments = &input->segments;
    char from[80] = "", until[80] = "", slowest[120] = "";
    if (segments->from_ns)
        snprintf(from, sizeof from, "begins %s",
                 TEXT_INSTANT((double)(segments->from_ns - intended_ns(input, 0))));
    if (segments->until_ns)
        snprintf(until, sizeof until, "ends %s",
                 TEXT_INSTANT((double)(segments->until_ns - intended_ns(input, 0))));
    snprintf(slowest, sizeof slowest,
             " The rest is too much for one analysis; of the load's slowest 1 %%, %s of %s are "
             "in it.",
             TEXT_COUNT(input->slowest_there), TEXT_COUNT(input->slowest));
    text_append(
        input->ends, sizeof input->ends,
        "%sWhat there is of the capture %s%s%s after the load's begin: %s of %s requests are "
        "looked at%s%.350s.%s",
        input->ends[0] ? " " : "", from, from[0] && until[0] ? " and " : "", until,
        TEXT_COUNT(requests), TEXT_COUNT(all), segments->why[0] ? "; " : "", segments->why,
        segments->left_out == 0 ? ""
        : segments->chosen      ? slowest
                                : " What came before is too much for one analysis.");
}

// Leaves the requests out that came before or after what the segments have. Client and server on
// different machines have no clock in common by which to do that: what is missing is then missing.
static int cut_samples(struct run_input *input, const char *run_dir, struct error *err)
{
    struct run_segments *segments = &input->segments;
    const struct sample *samples = input->samples.records;
    size_t all = input->samples.count;
    if (segments->left_out && !segments->chosen && input->has_events && input->events.count)
        segments->from_ns = begin_of_events(input);
    if (!segments->any || input->apart || input->without_client ||
        (!segments->from_ns && !segments->until_ns))
        return 0;
    size_t first = array_bound(0, all, i, intended_ns(input, i) < segments->from_ns), last = all;
    if (segments->until_ns)
        last = array_bound(first, all, k, intended_ns(input, k) < segments->until_ns);
    say_where_it_ends(input, last - first, all);
    input->samples.count = last - first;
    input->samples.records = samples + first;
    return last > first ? 0
                        : error_set(err, ERROR_INPUT,
                                    "%s: nothing to analyze: no request came while the capture "
                                    "recorded what is left of it",
                                    run_dir);
}

// A log of the server's that is whole, of a capture without segments. NULL: it is none.
static const struct log_header *header_of(const struct run_input *input,
                                          const struct log_reader *log)
{
    return !input->segments.any && log->mapping ? &log->header : NULL;
}

// Whether the samples are all of the load's requests: memory held them, and no agent had others.
static bool is_whole(const struct run_input *input)
{
    return input->samples.mapping && !json_is_object(json_object_get(input->load, "bounded")) &&
           !json_is_object(json_object_get(input->load, "agents"));
}

static void say_what_is_missing(struct run_input *input, const char *run_dir)
{
    char name[LOAD_FILE_BYTES];
    const bool ended = !input->without_client && !input->samples.header.cut_short;
    load_file(input, "load.json", name);
    const struct run_documents documents = {
        .experiment = input->experiment,
        .capture = input->capture,
        .load = input->load,
        .load_name = ended ? name : NULL,
        .events = header_of(input, &input->events),
        .sockets = header_of(input, &input->sockets),
        .calls = header_of(input, &input->calls),
        .connections = header_of(input, &input->shim_connections),
        .samples = is_whole(input) ? &input->samples.header : NULL};
    run_missing_words(run_dir, &documents, &input->missing, input->ends, sizeof input->ends);
}

int run_input_open(struct run_input *input, const char *run_dir, const char *load,
                   struct run_segment_range range, struct error *err)
{
    *input = (struct run_input){0};
    static const char *const documents[] = {"experiment.json", "client/capture.json",
                                            "server/capture.json", "facts.json"};
    json_t **const places[] = {&input->experiment, &input->client_capture, &input->capture,
                               &input->facts};
    int result = 0;
    char folder[RUN_FILE_PATH_BYTES], name[LOAD_FILE_BYTES];
    run_path(folder, run_dir, "."); // a file is no folder either
    if (access(folder, F_OK) != 0)
        return error_set_errno(err, ERROR_INPUT, "cannot open run folder %s", run_dir);
    for (size_t i = 0; i < sizeof documents / sizeof *documents && result == 0; i++)
        result = read_json(places[i], run_dir, documents[i], err);
    if (result == 0)
        result = run_loads_choose(&input->experiment, load, run_dir, input->folder,
                                  &input->other_loads, err);
    if (result == 0)
        result = read_json(&input->load, run_dir, load_file(input, "load.json", name), err);
    if (result == 0)
        result =
            run_segments_read(&input->segments, input->capture, run_dir, "server",
                              range.most_bytes ? range.most_bytes : run_segments_affordable(), err);
    if (result == 0 && !run_segments_keep(&input->segments, range))
        result = error_set(err, ERROR_FAILED, "%s: segments %u to %u of it are not there any more",
                           run_dir, range.first, range.last);
    if (result < 0 || (result = open_client(input, run_dir, err)) < 0 ||
        (range.first == 0 && (result = choose_segments(input, run_dir, err)) < 0) ||
        (result = open_server(input, run_dir, err)) < 0 ||
        (result = split_by_direction(input, run_dir, err)) < 0 ||
        (result = open_clocks(input, run_dir, err)) < 0 ||
        (result = check_all_moments(input, run_dir, err)) < 0 ||
        (result = check_other_loads(input, run_dir, err)) < 0 ||
        (result = take_datagrams(input, err)) < 0 || (result = take_kernel_calls(input, err)) < 0)
        return result;
    say_what_is_missing(input, run_dir);
    if (!input->without_client && input->samples.header.cut_short)
        say_where_load_ends(input);
    return cut_samples(input, run_dir, err);
}

void run_input_close(struct run_input *input)
{
    log_reader_close(&input->samples);
    log_reader_close(&input->client_connections);
    run_loads_free(&input->other_loads);
    log_reader_close(&input->events);
    log_reader_close(&input->client_events);
    log_reader_close(&input->sockets);
    log_reader_close(&input->calls);
    log_reader_close(&input->shim_connections);
    run_segments_free(&input->segments);
    run_segments_free(&input->client_segments);
    array_free(&input->accepted_calls);
    array_free(&input->peer_calls);
    array_free(&input->accepted_connections);
    array_free(&input->peer_connections);
    datagrams_free(&input->datagrams);
    kernel_calls_free(&input->kernel_calls);
    clock_map_free(input->clock_map);
    clock_map_free(input->client_clock_map);
    json_decref(input->experiment);
    json_decref(input->load);
    json_decref(input->capture);
    json_decref(input->client_capture);
    json_decref(input->facts);
    *input = (struct run_input){0};
}

bool run_input_find_recording(struct run_recording *recording, const char *run_dir,
                              const json_t *capture, const char *backend,
                              char problem[RUN_RECORDING_PROBLEM])
{
    const char *name =
        json_string_value(json_object_get(json_object_get(capture, backend), "perf_data"));
    if (!name)
        return false;
    if (strchr(name, '/') || name[0] == '.' || strlen(name) > 100) {
        snprintf(problem, RUN_RECORDING_PROBLEM,
                 "server/capture.json: %s.perf_data is not a file's name", backend);
        return false;
    }
    char in_server[128];
    snprintf(in_server, sizeof in_server, "server/%s", name);
    run_path(recording->path, run_dir, in_server);
    run_path(recording->symfs, run_dir, "server/symfs");
    if (access(recording->symfs, F_OK) < 0)
        recording->symfs[0] = '\0';
    if (access(recording->path, R_OK) == 0)
        return true;
    snprintf(problem, RUN_RECORDING_PROBLEM,
             "server/%s is not there or cannot be read, so functions are unknown", name);
    return false;
}
