// SPDX-License-Identifier: MIT
#include "analysis/run/input/run_input_open.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analysis/run/input/run_input_calls.h"
#include "analysis/run/input/run_input_clocks.h"
#include "analysis/run/input/run_input_part.h"
#include "base/connection.h"
#include "base/input_file.h"
#include "loadgen/client/sample_log.h"
#include "profiler/bpf/event_log.h"
#include "shim/message_log.h"

enum { CONNECTIONS_VERSION = 1 };

static int open_connections(struct log_reader *reader, const char *run_dir, const char *name,
                            struct error *err)
{
    return run_log_open(reader, run_dir, name, LOG_CONNECTIONS, CONNECTIONS_VERSION,
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
    input->has_client_events = segments->any || run_has(run_dir, "client/events.tlog");
    if (!input->has_client_events)
        return 0;
    return segments->any ? run_segments_open_events(segments, run_dir, &input->client_events, err)
                         : run_log_open(&input->client_events, run_dir, "client/events.tlog",
                                        LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), err);
}

// A load that was killed leaves the samples that it had written, under no name yet.
static int rescue_samples(const struct run_input *input, const char *run_dir, struct error *err)
{
    char path[RUN_FILE_PATH_BYTES], name[RUN_LOAD_FILE_BYTES];
    run_path(path, run_dir, run_load_file(input->folder, "samples.tlog", name));
    if (access(path, F_OK) == 0 ||
        !run_has(run_dir, run_load_file(input->folder, "connections.tlog", name)))
        return 0;
    return log_rescue(path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof(struct sample), err);
}

static int open_client(struct run_input *input, const char *run_dir, struct error *err)
{
    char samples[RUN_LOAD_FILE_BYTES], connections[RUN_LOAD_FILE_BYTES];
    run_load_file(input->folder, "samples.tlog", samples);
    run_load_file(input->folder, "connections.tlog", connections);
    if (rescue_samples(input, run_dir, err) < 0)
        return -(int)err->kind;
    input->without_client = !run_has(run_dir, samples);
    if (input->without_client && !input->experiment && input->capture)
        return 0;
    if (input->without_client)
        return error_set(err, ERROR_INPUT,
                         "%s: no %s in it: neither the folder of a finished run nor a capture",
                         run_dir, samples);
    int result = run_log_open(&input->samples, run_dir, samples, LOG_SAMPLES, SAMPLE_LOG_VERSION,
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
    input->has_events = run_has(run_dir, pieces ? "server/sockets.tlog" : "server/events.tlog");
    input->has_calls = run_has(run_dir, pieces ? "server/connections.tlog" : "server/calls.tlog");
    if (input->has_events) {
        result = pieces ? run_segments_open_events(&input->segments, run_dir, &input->events, err)
                        : run_log_open(&input->events, run_dir, "server/events.tlog", LOG_EVENTS,
                                       EVENT_LOG_VERSION, sizeof(struct event), err);
        if (result == 0)
            result =
                pieces ? run_segments_open_sockets(&input->segments, run_dir, &input->sockets, err)
                       : open_connections(&input->sockets, run_dir, "server/sockets.tlog", err);
    }
    if (result == 0 && input->has_calls) {
        result = pieces ? run_segments_open_calls(&input->segments, run_dir, &input->calls, err)
                        : run_log_open(&input->calls, run_dir, "server/calls.tlog", LOG_CALLS,
                                       MESSAGE_LOG_VERSION, sizeof(struct call), err);
        if (result == 0)
            result =
                open_connections(&input->shim_connections, run_dir, "server/connections.tlog", err);
    }
    return result;
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
    char name[RUN_LOAD_FILE_BYTES];
    const bool ended = !input->without_client && !input->samples.header.cut_short;
    run_load_file(input->folder, "load.json", name);
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
                   struct run_segment_range range, struct progress *progress, struct error *err)
{
    *input = (struct run_input){.is_excerpt = range.first != 0};
    static const char *const documents[] = {"experiment.json", "client/capture.json",
                                            "server/capture.json", "facts.json"};
    json_t **const places[] = {&input->experiment, &input->client_capture, &input->capture,
                               &input->facts};
    int result = 0;
    char folder[RUN_FILE_PATH_BYTES], name[RUN_LOAD_FILE_BYTES];
    run_path(folder, run_dir, "."); // a file is no folder either
    if (access(folder, F_OK) != 0)
        return error_set_errno(err, ERROR_INPUT, "cannot open run folder %s", run_dir);
    for (size_t i = 0; i < sizeof documents / sizeof *documents && result == 0; i++)
        result = read_json(places[i], run_dir, documents[i], err);
    if (result == 0)
        result = run_loads_choose(&input->experiment, load, run_dir, input->folder,
                                  &input->other_loads, err);
    if (result == 0)
        result =
            read_json(&input->load, run_dir, run_load_file(input->folder, "load.json", name), err);
    if (result == 0)
        result =
            run_segments_read(&input->segments, input->capture, run_dir, "server",
                              range.most_bytes ? range.most_bytes : run_segments_affordable(), err);
    if (result == 0 && !run_segments_keep(&input->segments, range))
        result = error_set(err, ERROR_FAILED, "%s: segments %u to %u of it are not there any more",
                           run_dir, range.first, range.last);
    if (result < 0 || (result = open_client(input, run_dir, err)) < 0 ||
        (!input->is_excerpt &&
         (result = run_input_choose_segments(input, run_dir, progress, err)) < 0) ||
        (result = open_server(input, run_dir, err)) < 0 ||
        (result = run_input_split_calls(input, run_dir, err)) < 0 ||
        (result = run_input_open_clocks(input, run_dir, err)) < 0 ||
        (result = run_input_take_datagrams(input, err)) < 0 ||
        (result = run_input_take_kernel_calls(input, err)) < 0)
        return result;
    say_what_is_missing(input, run_dir);
    if (!input->without_client && input->samples.header.cut_short)
        run_input_say_where_load_ends(input);
    return run_input_cut_samples(input, run_dir, err);
}
