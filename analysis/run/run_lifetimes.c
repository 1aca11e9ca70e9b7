// SPDX-License-Identifier: MIT
#include "analysis/run/run_lifetimes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/lifetime/join.h"
#include "analysis/run/input/run_input_part.h"
#include "analysis/timeline/detours.h"
#include "analysis/timeline/other_recordings.h"
#include "analysis/timeline/timeline.h"
#include "base/array.h"
#include "base/text.h"

enum { MOST_SERVERS = 64 }; // with a network stack of their own; an experiment has fewer

static int compare_threads(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return order_of(a, b);
}

// The server's threads: those that made socket calls. The calls are ordered by thread.
static int collect_threads(struct run_analysis *run)
{
    size_t count = 0;
    for (size_t i = 0; i < run->evidence.calls.count; i++)
        count += i == 0 ||
                 run->evidence.calls.items[i].thread != run->evidence.calls.items[i - 1].thread;
    run->evidence.application_threads =
        malloc((count + 1) * sizeof *run->evidence.application_threads);
    if (!run->evidence.application_threads)
        return -1;
    for (size_t i = 0; i < run->evidence.calls.count; i++)
        if (i == 0 ||
            run->evidence.calls.items[i].thread != run->evidence.calls.items[i - 1].thread)
            run->evidence.application_threads[run->evidence.application_thread_count++] =
                run->evidence.calls.items[i].thread;
    qsort(run->evidence.application_threads, count, sizeof *run->evidence.application_threads,
          compare_threads);
    return 0;
}

static int keep_connections(struct run_analysis *run, const struct run_input *input)
{
    const struct connection *connections = input->shim_connections.records;
    for (size_t i = 0; i < input->shim_connections.count; i++)
        if (array_push(&run->evidence.connections, connections[i]) < 0)
            return -1;
    return 0;
}

// Which server each message, thread and hand-off belongs to.
static int assign_applications(struct run_analysis *run, const struct run_input *input)
{
    struct applications *applications = &run->lifetimes.applications;
    if (applications_build(applications, input->calls.records, input->calls.count,
                           input->shim_connections.records, input->shim_connections.count,
                           input->sockets.records, input->sockets.count,
                           run->evidence.has_events ? &run->evidence.server : NULL) < 0)
        return -1;
    const size_t lives = run->lifetimes.all.count + run->lifetimes.beside;
    for (size_t i = 0; i < lives && applications->items.count > 1; i++) {
        struct lifetime *life = &run->lifetimes.all.items[i];
        uint16_t application = application_of_thread(applications, life->thread);
        life->application = application == NO_APPLICATION ? 0 : application;
    }
    return applications_mark_handoffs(applications, &run->evidence.server, input->sockets.records,
                                      input->sockets.count);
}

// Without an events log, takes those events that the processor's trace shows. Their sockets are the
// shim's connections.
static int take_events_of_trace(struct run_analysis *run, struct run_input *input,
                                struct event_array *events, struct progress *progress,
                                struct error *err)
{
    progress_phase(progress, "looking for hand-offs in the processor's trace");
    int result =
        run_trace_events(run->evidence.run_dir, run->evidence.capture, input->clock_map,
                         &input->clock, &run->evidence.calls, events, &run->evidence.trace, err);
    if (result < 0 || events->count == 0)
        return result;
    input->has_events = true;
    input->events.records = events->items; // not mapped: nothing to unmap
    input->events.count = events->count;
    input->sockets.records = input->shim_connections.records;
    input->sockets.count = input->shim_connections.count;
    return 0;
}

// What the capture knows of its host and the events do not say: what a page fault costs there, and
// what records this run, from other recordings on the same cores.
static int tell_host(struct host_timeline *host, const json_t *capture, struct error *err)
{
    detours_calibrate(host, json_integer_value(json_object_get(capture, "page_fault_ns")),
                      json_integer_value(json_object_get(capture, "page_fault_before_ns")));
    return other_recordings_name(host, json_object_get(capture, "own_processes")) < 0
               ? error_set(err, ERROR_FAILED, "no memory for the names of tasks")
               : 0;
}

// What the load's threads did, and its host where that is another machine.
static int take_client(struct run_analysis *run, const struct run_input *input, struct error *err)
{
    const json_t *depth = json_object_get(run->evidence.load, "depth");
    int result = 0;
    if (openings_build(&run->lifetimes.openings, input->client_connections.records,
                       input->client_connections.count,
                       input->apart ? &input->client_clock : &input->clock,
                       run->lifetimes.begin_ns) < 0)
        return error_set(err, ERROR_FAILED, "no memory for the load's connections");
    run->evidence.has_client_capture = input->has_client_events;
    run->evidence.has_client_events =
        input->has_client_events ||
        (run->evidence.has_events && !input->without_client && !input->apart);
    if (!run->evidence.has_client_events)
        return 0;
    if (input->has_client_events) {
        result = host_timeline_build(input->client_events.records, input->client_events.count,
                                     input->apart ? &input->client_clock : &input->clock,
                                     &run->evidence.client, err);
        if (result == 0)
            result = tell_host(&run->evidence.client, input->client_capture, err);
        run->evidence.dropped_client_events =
            input->client_events.header.dropped + run->evidence.client.damaged;
    }
    if (result == 0 &&
        client_turns_build(&run->lifetimes.client_turns, run->lifetimes.all.items,
                           run->lifetimes.all.count, input->client_connections.records,
                           input->client_connections.count,
                           (uint64_t)json_integer_value(depth)) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for what the load's threads did");
    return result;
}

// Takes out those calls of the server that the kernel's events of the same sockets contradict. The
// kernel's own calls, whose connections are the last, are these events.
static int doubt_calls(struct run_analysis *run, const struct run_input *input, struct error *err)
{
    size_t shims = input->shim_connections.count - input->kernel_calls.connections.count;
    const struct call_doubts_input in = {.connections = input->shim_connections.records,
                                         .connection_count = shims,
                                         .events = input->events.records,
                                         .event_count = input->events.count,
                                         .sockets = input->sockets.records,
                                         .socket_count = input->sockets.count,
                                         .clock = input->clock};
    if (!input->has_calls || !input->has_events || shims == 0 ||
        call_doubts_settle(&run->evidence.calls, &in, &run->evidence.doubts) == 0)
        return 0;
    return error_set(err, ERROR_FAILED, "no memory for %s socket calls",
                     TEXT_COUNT(input->calls.count));
}

// What a capture alone shows of requests, in place of a client's logs.
static int take_turns(struct run_analysis *run, struct run_input *input,
                      struct run_stand_ins *stand_ins, struct error *err)
{
    struct turns *turns = &stand_ins->turns;
    const struct log_reader *table = &input->shim_connections;
    const struct run_segments *segments = &input->segments;
    // The shim's connections have other numbers than the events'.
    const bool same_numbers = input->has_events && run->evidence.calls_by_shim == 0;
    const struct turns_input in = {.calls = &run->evidence.calls,
                                   .connections = table->records,
                                   .connection_count = table->count,
                                   .events = same_numbers ? input->events.records : NULL,
                                   .event_count = same_numbers ? input->events.count : 0};
    int result = turns_find(&in, turns);
    if (result == 0 && stand_ins->answered_until_ns)
        result = turns_keep(turns, stand_ins->answered_after_ns, stand_ins->answered_until_ns);
    else if (result == 0 && (segments->from_ns || segments->until_ns))
        result = turns_keep(turns, segments->from_ns,
                            segments->until_ns ? segments->until_ns : INT64_MAX);
    run_input_say_part(input, run->evidence.ends, sizeof run->evidence.ends);
    run->evidence.turns_framed = turns->framed.count;
    run->evidence.turns_piecewise = turns->piecewise.count;
    run->evidence.turns_waiting = turns->kept_waiting.count;
    run->evidence.turns_unanswered = turns->unanswered;
    run->evidence.turns_unasked = turns->unasked;
    input->samples.records = turns->samples.items; // not mapped: nothing to unmap
    input->samples.count = turns->samples.count;
    input->client_connections.records = turns->connections.items;
    input->client_connections.count = turns->connections.count;
    if (result < 0)
        return error_set(err, ERROR_FAILED, "no memory for the requests in %s socket calls",
                         TEXT_COUNT(run->evidence.calls.count));
    if (turns->samples.count)
        return 0;
    return error_set(err, ERROR_INCONCLUSIVE, "%s: no request in it: %s", run->evidence.run_dir,
                     run->evidence.calls.count
                         ? "nothing that the server received was answered"
                         : "no socket call of the server was recorded; a capture with --calls "
                           "kernel has them");
}

// Where on the network the requests were, if packets were stamped there.
static int divide_network(struct run_analysis *run, const struct run_input *input,
                          struct error *err)
{
    const struct run_hops_input hops = {
        .run_dir = run->evidence.run_dir,
        .boot_id = input->boot_id,
        .server = run_host_name(run, false),
        .client = run_host_name(run, true),
        .clock = input->clock,
        .apart = input->apart,
        .client_clock = input->client_clock,
        .client_boot_id = input->client_boot_id,
        .clock_map = input->clock_map,
        .client_clock_map = input->client_clock_map,
        .requests = {.samples = input->samples.records,
                     .connections = input->client_connections.records,
                     .connection_count = input->client_connections.count,
                     .lives = run->lifetimes.all.items,
                     .life_count = run->lifetimes.all.count},
    };
    return input->without_client ? 0 : run_hops_add(&hops, &run->lifetimes.hops, err);
}

// For how long the load waited for a reply; 0: nobody says.
static uint64_t reply_timeout_ns(const struct run_analysis *run)
{
    const json_t *load = json_object_get(run->evidence.experiment, "load");
    json_int_t timeout_ns = json_integer_value(json_object_get(load, "timeout_ns"));
    return timeout_ns > 0 ? (uint64_t)timeout_ns : 0;
}

// Whether the capture was asked for no record of the server: then its events are those of the
// load's cores, of no message.
static bool is_of_load_alone(const struct run_analysis *run)
{
    const char *asked = json_string_value(json_object_get(run->evidence.capture, "asked"));
    return asked && strcmp(asked, "none") == 0;
}

// Which servers have a network stack of their own, by the experiment.
static size_t find_own_stacks(const struct run_analysis *run, uint16_t ports[MOST_SERVERS])
{
    const char *name;
    size_t count = 0;
    json_t *server, *servers = json_object_get(run->evidence.experiment, "servers");
    json_object_foreach(servers, name, server)
    {
        json_int_t port = json_integer_value(json_object_get(server, "port"));
        if (json_is_true(json_object_get(server, "own_stack")) && port > 0 && port <= UINT16_MAX &&
            count < MOST_SERVERS)
            ports[count++] = (uint16_t)port;
    }
    return count;
}

// The lives of a load beside the one that is looked at, behind all others. What was counted of them
// is in the analysis of that load.
static int join_beside(struct run_analysis *run, struct join_input in, const struct run_load *load,
                       struct error *err)
{
    struct lifetime_array lives = {0}, *all = &run->lifetimes.all;
    struct holdup_array holdups = {0};
    struct join_counts counts = {0};
    const size_t before = all->count + run->lifetimes.beside;
    in.samples = load->samples.records;
    in.sample_count = load->samples.count;
    in.client_connections = load->connections.records;
    in.client_connection_count = load->connections.count;
    int result = join_lifetimes(&in, &lives, &holdups, &counts, err);
    if (result == 0 && array_reserve(all, before + lives.count) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for %s requests", TEXT_COUNT(lives.count));
    for (size_t i = 0; i < lives.count && result == 0; i++) {
        struct lifetime *life = &all->items[before + i];
        *life = lives.items[i];
        life->request = before + i;
        life->load = (uint16_t)(load - run->evidence.other_loads.items + 1);
        run->lifetimes.beside++;
    }
    array_free(&lives);
    array_free(&holdups);
    return result;
}

// The lives of requests that were answered before those that are looked at, behind all others: what
// an ordinary one is. Where hand-offs were spared for one side and not for the other, these are not
// alike.
static int join_earlier(struct run_analysis *run, struct join_input in, const struct turns *turns,
                        struct error *err)
{
    struct lifetime_array lives = {0}, *all = &run->lifetimes.all;
    struct holdup_array holdups = {0}, *kept = &run->lifetimes.holdups;
    struct join_counts counts = {0};
    const size_t before = all->count + run->lifetimes.beside;
    in.samples = turns->earlier.items;
    in.sample_count = turns->earlier.count;
    int result = join_lifetimes(&in, &lives, &holdups, &counts, err);
    if (result < 0 || (counts.spared > 0) != (run->lifetimes.join.spared > 0))
        goto done;
    if (array_reserve(all, before + lives.count) < 0 ||
        array_reserve(kept, kept->count + holdups.count) < 0) {
        result = error_set(err, ERROR_FAILED, "no memory for %s requests", TEXT_COUNT(lives.count));
        goto done;
    }
    for (size_t i = 0; i < lives.count; i++) {
        all->items[before + i] = lives.items[i];
        all->items[before + i].request = before + i;
        all->items[before + i].earlier = true;
    }
    for (size_t i = 0; i < holdups.count; i++) {
        kept->items[kept->count] = holdups.items[i];
        kept->items[kept->count++].request += before;
    }
    run->lifetimes.beside += lives.count;
done:
    array_free(&lives);
    array_free(&holdups);
    return result;
}

static int join_requests(struct run_analysis *run, const struct join_input *in, struct turns *turns,
                         struct error *err)
{
    int result =
        join_lifetimes(in, &run->lifetimes.all, &run->lifetimes.holdups, &run->lifetimes.join, err);
    if (result == 0 && in->without_client &&
        turns_order(turns, &run->lifetimes.all, &run->lifetimes.holdups) < 0)
        result =
            error_set(err, ERROR_FAILED, "no memory for %s requests", TEXT_COUNT(in->sample_count));
    for (size_t i = 0; i < run->evidence.other_loads.count && result == 0; i++)
        if (run->evidence.other_loads.items[i].samples.count)
            result = join_beside(run, *in, &run->evidence.other_loads.items[i], err);
    if (result == 0 && turns->earlier.count)
        result = join_earlier(run, *in, turns, err);
    return result;
}

// The socket calls, and what of a trace or of turns stands in for what a capture lacks.
static int take_calls(struct run_analysis *run, struct run_input *input,
                      struct run_stand_ins *stand_ins, struct progress *progress, struct error *err)
{
    struct run_evidence *evidence = &run->evidence;
    uint64_t damaged = 0;
    int result = 0;
    if (input->has_calls)
        result = application_calls_build_mixed(input->calls.records, input->calls.count,
                                               input->calls_by_kernel, &input->clock,
                                               &evidence->calls, &damaged, err);
    if (result == 0)
        result = doubt_calls(run, input, err);
    if (result == 0 && input->has_calls && !input->has_events)
        result = take_events_of_trace(run, input, &stand_ins->traced, progress, err);
    evidence->without_client = input->without_client;
    evidence->calls_by_kernel = input->calls_by_kernel;
    evidence->calls_by_shim = input->calls.count - input->calls_by_kernel;
    evidence->has_calls = input->has_calls;
    evidence->comparison = input->comparison;
    // Of a socket whose calls are contradicted one, at least, is not on record.
    evidence->dropped_calls =
        input->calls.header.dropped + damaged + evidence->doubts.calls + evidence->doubts.sockets;
    if (result == 0 && input->without_client)
        result = take_turns(run, input, stand_ins, err);
    return result;
}

static int take_events(struct run_analysis *run, const struct run_input *input,
                       struct progress *progress, struct error *err)
{
    struct run_evidence *evidence = &run->evidence;
    evidence->has_events = input->has_events;
    evidence->of_load_alone = is_of_load_alone(run);
    progress_phase(progress, "rebuilding timelines from %s events",
                   TEXT_COUNT(input->events.count));
    if (input->has_events) {
        int result = host_timeline_build(input->events.records, input->events.count, &input->clock,
                                         &evidence->server, err);
        if (result == 0)
            result = tell_host(&evidence->server, evidence->capture, err);
        if (result < 0)
            return result;
    }
    evidence->dropped_events = input->events.header.dropped + evidence->server.damaged;
    evidence->dropped_samples = input->samples.header.dropped;
    // What was dropped is of all that was recorded, also where a part of it is looked at.
    double records = fmax((double)input->events.count, (double)input->events.header.records) +
                     (double)input->calls.count;
    double dropped = (double)(evidence->dropped_events + evidence->dropped_calls);
    evidence->dropped_share = dropped > 0 ? dropped / (records + dropped) : 0;
    // Two stamps differ by twice a clock's error at most.
    evidence->clock_error_ns = 2 * fmax(input->clock.error_ns, input->client_clock.error_ns);
    return 0;
}

// The lives of the requests, and through which hops they passed and whose servers they met.
static int join_all(struct run_analysis *run, struct run_input *input, struct turns *turns,
                    struct error *err)
{
    uint16_t own_stacks[MOST_SERVERS];
    const size_t own_stack_count = find_own_stacks(run, own_stacks);
    const struct join_input joined = {
        .samples = input->samples.records,
        .sample_clock = input->without_client ? HOST_CLOCK_RAW : HOST_CLOCK_TSC,
        .without_client = input->without_client,
        .sample_count = input->samples.count,
        .client_connections = input->client_connections.records,
        .client_connection_count = input->client_connections.count,
        .events = run_has_server_events(run) ? input->events.records : NULL,
        .event_count = run_has_server_events(run) ? input->events.count : 0,
        .traced = run_trace_gives_stamps(&run->evidence.trace),
        .sockets = input->sockets.records,
        .socket_count = input->sockets.count,
        .calls = input->has_calls ? &run->evidence.calls : NULL,
        .shim_connections = input->shim_connections.records,
        .shim_connection_count = input->shim_connections.count,
        .own_stacks = own_stacks,
        .own_stack_count = own_stack_count,
        .timeout_ns = reply_timeout_ns(run),
        .clock = input->clock,
        .client_clock = input->apart ? &input->client_clock : NULL,
    };
    const struct peers_input peers = {
        .calls = &run->evidence.calls,
        .peer_calls = input->peer_calls.items,
        .peer_call_count = input->peer_calls.count,
        .connections = input->peer_connections.items,
        .connection_count = input->peer_connections.count,
        .programs = json_object_get(json_object_get(run->evidence.capture, "shim"), "peers"),
        .join = joined,
        .applications = &run->lifetimes.applications,
        .host = run->evidence.has_events ? &run->evidence.server : NULL,
    };
    int result = join_requests(run, &joined, turns, err);
    run->lifetimes.join.foreign_datagrams = input->datagrams.strangers;
    if (result == 0)
        result = divide_network(run, input, err);
    if (result == 0 && assign_applications(run, input) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for the servers' names");
    if (result == 0 && input->has_calls)
        result = peers_build(&peers, &run->lifetimes.peers, err);
    return result;
}

// Who was ahead of whom at the server, by each thread and by each client.
static int order_all(struct run_analysis *run, const struct run_input *input, struct error *err)
{
    struct run_lifetimes *lives = &run->lifetimes;
    const struct application_calls *calls = run->evidence.has_calls ? &run->evidence.calls : NULL;
    const struct host_timeline *server = run->evidence.has_events ? &run->evidence.server : NULL;
    const size_t count = lives->all.count + lives->beside;
    if (service_order_build(&lives->order, lives->all.items, count, calls, server) < 0 ||
        service_order_group_clients(&lives->order, input->shim_connections.records,
                                    input->shim_connections.count) < 0)
        return error_set(err, ERROR_FAILED, "no memory for the order of %s requests",
                         TEXT_COUNT(lives->all.count));
    return 0;
}

int run_lifetimes_build(struct run_analysis *run, struct run_input *input,
                        struct run_stand_ins *stand_ins, struct progress *progress,
                        struct error *err)
{
    int result = take_calls(run, input, stand_ins, progress, err);
    if (result == 0)
        result = take_events(run, input, progress, err);
    if (result < 0)
        return result;
    if (collect_threads(run) < 0 || keep_connections(run, input) < 0)
        return error_set(err, ERROR_FAILED, "no memory for the server's threads");
    progress_phase(progress, "joining %s requests", TEXT_COUNT(input->samples.count));
    result = join_all(run, input, &stand_ins->turns, err);
    if (result == 0)
        result = order_all(run, input, err);
    if (result == 0)
        result = take_client(run, input, err);
    if (result == 0 && run->evidence.has_events &&
        unseen_time_build(&run->lifetimes.unseen, run->lifetimes.all.items,
                          run->lifetimes.all.count, &run->evidence.server) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for what was not seen");
    return result;
}

void run_stand_ins_free(struct run_stand_ins *stand_ins)
{
    array_free(&stand_ins->traced);
    turns_free(&stand_ins->turns);
}
