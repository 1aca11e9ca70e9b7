// SPDX-License-Identifier: MIT
//
// The `intel_pt` backend of `taillight capture`: perf records the processor's trace into
// <out>/perf.data while the other backends record what they can, and what of the trace was lost is
// counted at the end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/perf/perf_data.h"
#include "experiments/capture/capture_backend.h"
#include "experiments/common/run_folder.h"
#include "profiler/perf_recorder.h"
#include "profiler/processor_trace.h"

struct trace {
    struct perf_recorder recorder;
    char event[256], path[RUN_PATH_BYTES + 32]; // path: of the recording
    bool kcore;
    bool absent; // this host has no processor trace at all
};

static const uint64_t default_buffer = 32 << 20, least_buffer = 8 << 10;
static const char perf_data_name[] = "perf.data";

static int intel_pt_check(const struct capture_options *whole, bool chosen, struct error *err)
{
    const struct capture_trace_options *options = &whole->trace;
    (void)chosen;
    enum processor_trace_detail detail;
    uint64_t bytes = options->buffer_bytes;
    if (options->detail && !processor_trace_parse_detail(options->detail, &detail))
        return error_set(err, ERROR_INPUT, "--pt-detail: \"%s\" is not light, normal or fine",
                         options->detail);
    if (options->detail && options->event)
        return error_set(err, ERROR_INPUT, "--pt-detail and --pt-event exclude each other");
    if (bytes && (bytes < least_buffer || bytes & (bytes - 1)))
        return error_set(err, ERROR_INPUT,
                         "--pt-buffer: not a power of two from 8KiB on, such as 64MiB");
    if (options->pids && options->pids[strspn(options->pids, "0123456789,")])
        return error_set(err, ERROR_INPUT, "--pid: \"%s\" is not a list of process numbers",
                         options->pids);
    if (options->per_thread && !options->pids)
        return error_set(err, ERROR_INPUT, "--per-thread needs --pid");
    return 0;
}

// Chooses the event to record and the perf to record it with; an error where Intel PT is asked for
// and cannot be had.
static int choose_event(struct trace *trace, const struct capture_options *whole,
                        struct processor_trace *found, struct error *err)
{
    const struct capture_trace_options *options = &whole->trace;
    enum processor_trace_detail detail = PROCESSOR_TRACE_NORMAL;
    bool other = options->event && strncmp(options->event, "intel_pt", 8) != 0;
    processor_trace_find("", whole->perf, found);
    trace->absent = found->obstacle == PROCESSOR_TRACE_NO_CPU;
    if (found->obstacle != PROCESSOR_TRACE_READY && !other)
        return error_set(err, ERROR_FAILED, "cannot record Intel PT: %s; needed: %s", found->reason,
                         found->how);
    if (options->detail)
        processor_trace_parse_detail(options->detail, &detail);
    if (options->event)
        snprintf(trace->event, sizeof trace->event, "%s", options->event);
    else
        processor_trace_event(found, detail, trace->event, sizeof trace->event);
    return 0;
}

static int trace_begin(struct trace *trace, const struct capture *capture, struct error *err)
{
    const struct capture_options *whole = &capture->options;
    const struct capture_trace_options *options = &whole->trace;
    const char *out_dir = whole->out;
    struct processor_trace found;
    char log[sizeof trace->path];
    *trace = (struct trace){.recorder.process = {.input = -1, .output = -1}};
    if (strlen(out_dir) + sizeof perf_data_name + 1 > sizeof trace->path)
        return error_set(err, ERROR_INPUT, "--out: the path is too long");
    int result = choose_event(trace, whole, &found, err);
    if (result < 0)
        return result;
    snprintf(trace->path, sizeof trace->path, "%s/%s", out_dir, perf_data_name);
    snprintf(log, sizeof log, "%s/perf.log", out_dir);
    trace->kcore = access("/proc/kcore", R_OK) == 0;
    bool has_aux = strncmp(trace->event, "intel_pt", 8) == 0 || options->buffer_bytes;
    struct perf_recorder_settings settings = {
        .perf = found.perf[0] ? found.perf : NULL,
        .event = trace->event,
        .output = trace->path,
        .log = log,
        .cores = capture->cores,
        .pids = options->pids,
        .per_thread = options->per_thread,
        .kcore = trace->kcore,
        .switches = true,
        .snapshot = options->snapshot,
        .aux_bytes = !has_aux                ? 0
                     : options->buffer_bytes ? options->buffer_bytes
                                             : default_buffer,
    };
    result = perf_recorder_start(&trace->recorder, &settings, err);
    if (result == 0)
        result = perf_recorder_enable(&trace->recorder, err);
    return result;
}

// truncated: how often the AUX buffer was full, so that trace was lost.
static int trace_finish(struct trace *trace, json_t **document, struct error *err)
{
    struct perf_data data;
    struct perf_limits counts_only = perf_default_limits;
    counts_only.events = 0;
    int result = perf_recorder_stop(&trace->recorder, err);
    if (result == 0)
        result = perf_data_open(trace->path, &counts_only, &data, err);
    if (result < 0)
        return result;
    *document =
        json_pack("{s:s, s:s, s:s, s:b, s:i, s:I, s:I, s:I, s:I, s:I}", "perf_data", perf_data_name,
                  "event", trace->event, "command", trace->recorder.command, "kcore", trace->kcore,
                  "snapshots", (int)trace->recorder.snapshots, "streams",
                  (json_int_t)data.streams.count, "bytes", (json_int_t)data.aux_bytes, "truncated",
                  (json_int_t)data.aux_truncated, "lost_records", (json_int_t)data.lost_records,
                  "complaints", (json_int_t)(data.complaint_count - (data.events_over_limit > 0)));
    perf_data_free(&data);
    return *document ? 0 : error_set(err, ERROR_FAILED, "out of memory");
}

static int intel_pt_start(struct capture *capture, bool needed, void **state, struct error *err)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return error_set(err, ERROR_FAILED, "out of memory");
    int result = trace_begin(trace, capture, err);
    *state = trace;
    if (result < 0 && trace->absent && !needed) {
        perf_recorder_fini(&trace->recorder);
        free(trace);
        *state = NULL;
        return 0;
    }
    return result;
}

static int intel_pt_poll(void *state, struct error *err)
{
    return perf_recorder_check(&((struct trace *)state)->recorder, err);
}

static int intel_pt_disable(void *state, struct error *err)
{
    return perf_recorder_disable(&((struct trace *)state)->recorder, err);
}

static int intel_pt_stop(struct capture *capture, void *state, json_t *dropped, json_t **document,
                         struct error *err)
{
    char text[200];
    int result = trace_finish(state, document, err);
    if (result < 0)
        return result;
    json_t *truncated = json_object_get(*document, "truncated");
    if (json_integer_value(truncated)) {
        snprintf(text, sizeof text,
                 "the trace was cut %lld times because its buffer was full: --pt-buffer, or "
                 "--pt-detail light",
                 (long long)json_integer_value(truncated));
        capture_warn(capture, text);
    }
    json_object_set(dropped, "trace", truncated);
    return 0;
}

static void intel_pt_free(void *state)
{
    perf_recorder_fini(&((struct trace *)state)->recorder);
    free(state);
}

static int intel_pt_take_snapshot(struct capture *capture, void *state, int *number,
                                  struct error *err)
{
    struct trace *trace = state;
    if (!capture->options.trace.snapshot)
        return 0;
    int result = perf_recorder_snapshot(&trace->recorder, err);
    *number = (int)trace->recorder.snapshots;
    return result < 0 ? result : 1;
}

const struct capture_backend backend_intel_pt = {
    .name = "intel_pt",
    .help = "every function call, by the processor's trace",
    .lack = "no function calls",
    .files = "perf.data",
    .is_auto = true,
    .examine = doctor_check_processor_trace,
    .check = intel_pt_check,
    .start = intel_pt_start,
    .poll = intel_pt_poll,
    .kept = backend_keeps_nothing,
    .ring_bytes = backend_keeps_nothing,
    .cut = backend_needs_no_cut,
    .disable = intel_pt_disable,
    .stop = intel_pt_stop,
    .free = intel_pt_free,
    .add_followed = backend_adds_no_core,
    .follow = backend_has_fixed_cores,
    .watch = backend_watches_cores,
    .thread_here = backend_knows_no_thread,
    .take_snapshot = intel_pt_take_snapshot,
};
