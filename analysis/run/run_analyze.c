// SPDX-License-Identifier: MIT
#include "analysis/run/run_analyze.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/lifetime/join.h"
#include "analysis/lifetime/turns.h"
#include "analysis/run/run_functions.h"
#include "analysis/run/run_input.h"
#include "analysis/run/run_analysis.h"
#include "analysis/run/run_trace.h"
#include "analysis/run/run_trace_events.h"
#include "analysis/run/run_verdict.h"
#include "analysis/timeline/timeline.h"
#include "base/array.h"
#include "base/new_file.h"

#define DEFAULT_SLICE "p99-100"

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
    int result = run_trace_events(run->evidence.run_dir, run->evidence.capture, &input->clock,
                                  &run->evidence.calls, events, &run->evidence.trace, err);
    if (result < 0 || events->count == 0)
        return result;
    input->has_events = true;
    input->events.records = events->items; // not mapped: nothing to unmap
    input->events.count = events->count;
    input->sockets.records = input->shim_connections.records;
    input->sockets.count = input->shim_connections.count;
    return 0;
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
    if (!input->has_calls || !input->has_events ||
        call_doubts_settle(&run->evidence.calls, &in, &run->evidence.doubts) == 0)
        return 0;
    return error_set(err, ERROR_FAILED, "no memory for %zu socket calls", input->calls.count);
}

// What a capture alone shows of requests, in place of a client's logs.
static int take_turns(struct run_analysis *run, struct run_input *input,
                      const struct run_request *request, struct turns *turns, struct error *err)
{
    const struct log_reader *table = &input->shim_connections;
    const struct run_segments *segments = &input->segments;
    // The shim's connections have other numbers than the events'.
    const bool has_frames = input->has_events && run->evidence.calls_by_shim == 0;
    const struct turns_input in = {.calls = &run->evidence.calls,
                                   .connections = table->records,
                                   .connection_count = table->count,
                                   .events = has_frames ? input->events.records : NULL,
                                   .event_count = has_frames ? input->events.count : 0};
    int result = turns_find(&in, turns);
    if (request->answered_until_ns)
        turns_keep(turns, request->answered_after_ns, request->answered_until_ns);
    else if (segments->from_ns || segments->until_ns)
        turns_keep(turns, segments->from_ns, segments->until_ns ? segments->until_ns : INT64_MAX);
    run->evidence.turns_framed = turns->framed.count;
    run->evidence.turns_unanswered = turns->unanswered;
    run->evidence.turns_unasked = turns->unasked;
    input->samples.records = turns->samples.items; // not mapped: nothing to unmap
    input->samples.count = turns->samples.count;
    input->client_connections.records = turns->connections.items;
    input->client_connections.count = turns->connections.count;
    if (result < 0)
        return error_set(err, ERROR_FAILED, "no memory for the requests in %zu socket calls",
                         run->evidence.calls.count);
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
        .stays = {.samples = input->samples.records,
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
        result = error_set(err, ERROR_FAILED, "no memory for %zu requests", lives.count);
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

static int join_requests(struct run_analysis *run, const struct join_input *in, struct turns *turns,
                         struct error *err)
{
    int result =
        join_lifetimes(in, &run->lifetimes.all, &run->lifetimes.holdups, &run->lifetimes.join, err);
    if (result == 0 && in->without_client &&
        turns_order(turns, &run->lifetimes.all, &run->lifetimes.holdups) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for %zu requests", in->sample_count);
    for (size_t i = 0; i < run->evidence.other_loads.count && result == 0; i++)
        if (run->evidence.other_loads.items[i].samples.count)
            result = join_beside(run, *in, &run->evidence.other_loads.items[i], err);
    return result;
}

// The socket calls, and what of a trace or of turns stands in for what a capture lacks.
static int take_calls(struct run_analysis *run, struct run_input *input, struct event_array *traced,
                      const struct run_request *request, struct turns *turns,
                      struct progress *progress, struct error *err)
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
        result = take_events_of_trace(run, input, traced, progress, err);
    evidence->without_client = input->without_client;
    evidence->calls_by_kernel = input->calls_by_kernel;
    evidence->calls_by_shim = input->calls.count - input->calls_by_kernel;
    evidence->has_calls = input->has_calls;
    evidence->comparison = input->comparison;
    // Of a socket whose calls are contradicted one, at least, is not on record.
    evidence->dropped_calls =
        input->calls.header.dropped + damaged + evidence->doubts.calls + evidence->doubts.sockets;
    if (result == 0 && input->without_client)
        result = take_turns(run, input, request, turns, err);
    return result;
}

static int take_events(struct run_analysis *run, const struct run_input *input,
                       struct progress *progress, struct error *err)
{
    struct run_evidence *evidence = &run->evidence;
    evidence->has_events = input->has_events;
    evidence->of_load_alone = is_of_load_alone(run);
    progress_phase(progress, "rebuilding timelines from %zu events", input->events.count);
    if (input->has_events) {
        int result = host_timeline_build(input->events.records, input->events.count, &input->clock,
                                         &evidence->server, err);
        if (result < 0)
            return result;
    }
    evidence->dropped_events = input->events.header.dropped + evidence->server.damaged;
    evidence->dropped_samples = input->samples.header.dropped;
    double records = (double)(input->events.count + input->calls.count);
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
        return error_set(err, ERROR_FAILED, "no memory for the order of %zu requests",
                         lives->all.count);
    return 0;
}

static int rebuild(struct run_analysis *run, struct run_input *input, struct event_array *traced,
                   const struct run_request *request, struct turns *turns,
                   struct progress *progress, struct error *err)
{
    int result = take_calls(run, input, traced, request, turns, progress, err);
    if (result == 0)
        result = take_events(run, input, progress, err);
    if (result < 0)
        return result;
    if (collect_threads(run) < 0 || keep_connections(run, input) < 0)
        return error_set(err, ERROR_FAILED, "no memory for the server's threads");
    progress_phase(progress, "joining %zu requests", input->samples.count);
    result = join_all(run, input, turns, err);
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

static int diagnose_into(struct diagnosis_array *out, const struct diagnosis_input *in,
                         const struct diagnosis_slice *slice, struct error *err)
{
    struct diagnosis diagnosis;
    int result = diagnose(in, slice, &diagnosis, err);
    if (result < 0)
        return result;
    if (array_push(out, diagnosis) < 0) {
        diagnosis_free(&diagnosis);
        return error_set(err, ERROR_FAILED, "no memory for the diagnosis");
    }
    return 0;
}

static int diagnose_all(struct run_analysis *run, const struct diagnosis_slice_array *slices,
                        bool parts, struct error *err)
{
    struct diagnosis_input in;
    int result = 0;
    run_diagnosis_input(run, &in);
    for (size_t i = 0; i < slices->count && result == 0; i++)
        result = diagnose_into(&run->findings.diagnoses, &in, &slices->items[i], err);
    for (size_t i = 0; parts && i < (PARTS - 1) * slices->count && result == 0; i++) {
        in.part = (enum lifetime_part)(PART_WHOLE + 1 + i % (PARTS - 1));
        result =
            diagnose_into(&run->findings.part_diagnoses, &in, &slices->items[i / (PARTS - 1)], err);
    }
    return result;
}

// The servers' threads over the window of the run's slice, or from the first intended time to the
// last reply.
static int account_for_threads(struct run_analysis *run, struct error *err)
{
    const struct diagnosis_slice *slice =
        run->findings.diagnoses.count ? &run->findings.diagnoses.items[0].slice : NULL;
    struct time_budget_input in = {.host = &run->evidence.server,
                                   .threads = run->evidence.application_threads,
                                   .thread_count = run->evidence.application_thread_count,
                                   .applications = &run->lifetimes.applications,
                                   .begin_ns = run->lifetimes.begin_ns,
                                   .end_ns = run->lifetimes.end_ns};
    struct busy_time_array busy = {0};
    if (!run->evidence.has_events)
        return 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        int64_t read_ns = life->stamp_ns[STAMP_REPLY_READ];
        if (lifetime_has(life, STAMP_REPLY_READ) && read_ns > in.end_ns)
            in.end_ns = read_ns;
    }
    if (slice && slice->from_ns != slice->to_ns)
        in.begin_ns = slice->from_ns, in.end_ns = slice->to_ns;
    int result = 0;
    if (run->evidence.has_calls) {
        in.busy = &busy;
        result = busy_times_build(&busy, &run->evidence.calls, run->lifetimes.all.items,
                                  run->lifetimes.all.count + run->lifetimes.beside);
    }
    if (result == 0)
        result = time_budget_build(&run->findings.budget, &in);
    array_free(&busy);
    return result < 0 ? error_set(err, ERROR_FAILED, "no memory for the server's time budget") : 0;
}

// Over UDP a sample counts datagrams, not bytes.
static bool counts_bytes(const struct run_input *input)
{
    const struct connection *first = input->client_connections.records;
    return input->client_connections.count && first->protocol == CONNECTION_TCP;
}

// A request of the run's slice, or one never answered, is slow.
static struct trait_request trait_request_of(const struct lifetime *life,
                                             const struct sample *sample, bool bytes,
                                             double slow_ns)
{
    return (struct trait_request){
        .values = {[TRAIT_OPERATION] = sample->operation,
                   [TRAIT_KEY] = sample->key,
                   [TRAIT_CONNECTION] = sample->connection,
                   [TRAIT_SENDER] = sample_sender(sample),
                   [TRAIT_REQUEST] = bytes ? sample->request_end - sample->request_begin : 0,
                   [TRAIT_REPLY] = bytes ? sample->reply_end - sample->reply_begin : 0},
        .latency_ns = life->latency_ns,
        .slow = life->latency_ns >= slow_ns};
}

// What the slow requests of the run's slice share.
static int find_shared_traits(struct run_analysis *run, const struct run_input *input,
                              struct error *err)
{
    const struct diagnosis *first =
        run->findings.diagnoses.count ? run->findings.diagnoses.items : NULL;
    const struct sample *samples = input->samples.records;
    bool bytes = counts_bytes(input);
    size_t count = 0;
    if (!first || first->slice.one || first->slice.high < 1 || !(first->slice_low_ns > 0))
        return 0;
    struct trait_request *requests = malloc((run->lifetimes.all.count + 1) * sizeof *requests);
    for (size_t i = 0; requests && i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        int64_t at = life->stamp_ns[STAMP_INTENDED];
        bool within = first->slice.from_ns == first->slice.to_ns ||
                      (at >= first->slice.from_ns && at < first->slice.to_ns);
        if (within && lifetime_has(life, STAMP_SEND) && life->request < input->samples.count)
            requests[count++] =
                trait_request_of(life, &samples[life->request], bytes, first->slice_low_ns);
    }
    int result = requests ? shared_traits_find(&run->findings.shared, requests, count) : -1;
    free(requests);
    return result < 0 ? error_set(err, ERROR_FAILED, "no memory for what %zu requests share", count)
                      : 0;
}

static int read_window(const json_t *window, size_t index, struct diagnosis_slice *slice,
                       struct error *err)
{
    json_t *from = json_object_get(window, "from_ns"), *to = json_object_get(window, "to_ns");
    if (!json_is_integer(from) || !json_is_integer(to) || json_integer_value(from) < 0 ||
        json_integer_value(to) <= json_integer_value(from))
        return error_set(err, ERROR_INPUT,
                         "experiment.json: diagnose.windows[%zu]: from_ns and to_ns must be whole "
                         "numbers with 0 <= from_ns < to_ns",
                         index);
    slice->from_ns = json_integer_value(from);
    slice->to_ns = json_integer_value(to);
    slice->relative = true;
    return 0;
}

static int add_slice(const struct run_analysis *run, struct diagnosis_slice slice,
                     struct diagnosis_slice_array *out, struct error *err)
{
    int result = run_place_slice(run, &slice, err);
    if (result == 0 && array_push(out, slice) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for slices");
    return result;
}

// The slice of the whole run first, then the same slice of each window.
static int slices_of_experiment(const struct run_analysis *run, struct diagnosis_slice_array *out,
                                struct error *err)
{
    const json_t *settings = json_object_get(run->evidence.experiment, "diagnose");
    const json_t *text = json_object_get(settings, "slice");
    const json_t *windows = json_object_get(settings, "windows");
    struct diagnosis_slice slice;
    if (text && !json_is_string(text))
        return error_set(err, ERROR_INPUT, "experiment.json: diagnose.slice must be a string");
    if (windows && !json_is_array(windows))
        return error_set(err, ERROR_INPUT, "experiment.json: diagnose.windows must be an array");
    int result = diagnosis_slice_parse(text ? json_string_value(text) : DEFAULT_SLICE, &slice, err);
    if (result < 0)
        return error_prefix(err, "experiment.json: diagnose");
    result = add_slice(run, slice, out, err);
    for (size_t i = 0; result == 0 && i < json_array_size(windows); i++) {
        result = read_window(json_array_get(windows, i), i, &slice, err);
        if (result == 0)
            result = add_slice(run, slice, out, err);
    }
    return result;
}

static int add_slices(const struct run_analysis *run, const struct diagnosis_slice_array *asked,
                      struct diagnosis_slice_array *out, struct error *err)
{
    int result = 0;
    for (size_t i = 0; asked && i < asked->count && result == 0; i++)
        result = add_slice(run, asked->items[i], out, err);
    return result;
}

// What the capture says of its trace. One that was asked for by name has to show something.
static void take_trace_facts(struct run_evidence *evidence)
{
    const json_t *recorded = json_object_get(evidence->capture, "intel_pt");
    const json_t *asked = json_object_get(evidence->capture, "asked");
    const char *name = json_string_value(
        asked ? asked : json_object_get(evidence->capture, "backend")); // captures before `asked`
    struct run_trace *trace = &evidence->trace;
    if (!json_is_object(recorded))
        return;
    trace->asked = name && strcmp(name, "intel_pt") == 0;
    trace->truncated = (uint64_t)json_integer_value(json_object_get(recorded, "truncated"));
    if (!evidence->has_events && !trace->problem[0])
        snprintf(trace->problem, sizeof trace->problem,
                 "there is no log of kernel events, and the processor's trace shows no hand-off "
                 "to the server in its place");
}

// Adds functions to the timeline where they were traced.
static int add_functions(struct run_analysis *run, const struct run_input *input,
                         const struct diagnosis_input *in,
                         const struct diagnosis_slice_array *slices, struct progress *progress,
                         struct error *err)
{
    const struct run_trace_input trace = {.run_dir = run->evidence.run_dir,
                                          .capture = run->evidence.capture,
                                          .clock = input->clock,
                                          .diagnosis = in,
                                          .slices = slices->items,
                                          .slice_count = slices->count};
    take_trace_facts(&run->evidence);
    if (!run->evidence.has_events)
        return 0;
    progress_phase(progress, "decoding what these messages need of the trace");
    int result = run_trace_add(&trace, &run->evidence.server, &run->evidence.trace, err);
    return result < 0
               ? result
               : run_functions_add(run->evidence.run_dir, run->evidence.capture, &input->clock,
                                   &run->evidence.server, &run->evidence.functions, err);
}

// Diagnoses each slice, with the functions of these and of those to be profiled.
static int explain(struct run_analysis *run, const struct run_input *input,
                   const struct run_request *request, struct progress *progress, struct error *err)
{
    struct diagnosis_slice_array slices = {0};
    struct diagnosis_input in;
    run_diagnosis_input(run, &in);
    int result = request->slices && request->slices->count
                     ? add_slices(run, request->slices, &slices, err)
                     : slices_of_experiment(run, &slices, err);
    size_t diagnosed = slices.count;
    if (result == 0)
        result = add_slices(run, request->profiled, &slices, err);
    if (result == 0)
        result = add_functions(run, input, &in, &slices, progress, err);
    slices.count = diagnosed;
    progress_phase(progress, "diagnosing");
    if (result == 0)
        result = diagnose_all(run, &slices, !request->whole_alone, err);
    if (result == 0 && !request->whole_alone)
        result = account_for_threads(run, err);
    if (result == 0 && !request->whole_alone)
        result = find_shared_traits(run, input, err);
    if (result == 0)
        result =
            run_samples_add(run->evidence.run_dir, run->evidence.capture, &in,
                            run->findings.diagnoses.count ? run->findings.diagnoses.items : NULL,
                            &run->evidence.samples, err);
    array_free(&slices);
    return result;
}

static void take_documents(struct run_analysis *run, struct run_input *input)
{
    memcpy(run->evidence.ends, input->ends, sizeof run->evidence.ends);
    run->evidence.experiment = input->experiment;
    run->evidence.load = input->load;
    run->evidence.capture = input->capture;
    run->evidence.facts = input->facts;
    input->experiment = input->load = input->capture = input->facts = NULL;
    snprintf(run->evidence.result_suffix, sizeof run->evidence.result_suffix, "%s",
             input->folder + strlen("client"));
    run->evidence.other_loads = input->other_loads;
    input->other_loads = (struct run_load_array){0};
    const char *name = json_string_value(json_object_get(run->evidence.experiment, "name"));
    snprintf(run->evidence.name, sizeof run->evidence.name, "%s", name ? name : "");
}

int run_analyze(const struct run_request *request, struct progress *progress,
                struct run_analysis *out, struct error *err)
{
    const char *run_dir = request->run_dir;
    struct run_input input = {0};
    struct event_array traced = {0};
    struct turns turns = {0};
    memset(out, 0, sizeof *out);
    if (strlen(run_dir) >= sizeof out->evidence.run_dir)
        return error_set(err, ERROR_INPUT, "%.80s...: the run folder's path is too long", run_dir);
    strcpy(out->evidence.run_dir, run_dir);
    out->findings.whole_alone = request->whole_alone;
    new_file_sweep(run_dir);
    int result = run_input_open(&input, run_dir, request->load, request->segments, err);
    if (result == 0)
        result = run_categories_read(&out->findings.categories, run_dir, request->categories, err);
    if (result < 0)
        goto done;
    take_documents(out, &input);
    result = rebuild(out, &input, &traced, request, &turns, progress, err);
    if (result < 0)
        goto done;
    if (run_statistics(out) < 0) {
        result = error_set(err, ERROR_FAILED, "no memory for the statistics of %zu requests",
                           out->lifetimes.all.count);
        goto done;
    }
    result = explain(out, &input, request, progress, err);
    if (result == 0)
        run_verdict(out);
done:
    run_input_close(&input);
    array_free(&traced);
    turns_free(&turns);
    progress_end(progress);
    if (result < 0)
        run_analysis_free(out);
    return result;
}
