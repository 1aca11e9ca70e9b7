// SPDX-License-Identifier: MIT
//
// The end of a capture: its logs, and capture.json, which says what was recorded and what was lost.
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "experiments/capture/capture_state.h"
#include "experiments/common/run_folder.h"

static int write_calls(struct capture *capture, struct error *err)
{
    struct message_stats stats;
    if (!capture->collector)
        return 0;
    int result = message_collector_finish(capture->collector, capture->options.out, &stats, err);
    if (result == 0) {
        json_object_set_new(capture->document, "shim", message_stats_json(&stats));
        json_object_set_new(json_object_get(capture->document, "dropped"), "calls",
                            json_integer((json_int_t)stats.dropped));
        if (stats.warning[0])
            capture_warn(capture, stats.warning);
    }
    message_stats_free(&stats);
    return result;
}

static int write_events(struct capture *capture, struct error *err)
{
    json_t *stats = NULL;
    if (!capture->events)
        return 0;
    int result = events_capture_stop(capture->events, capture->options.out, &stats, err);
    if (result < 0)
        return result;
    json_t *dropped = json_object_get(capture->document, "dropped");
    json_object_set(dropped, "events", json_object_get(stats, "dropped"));
    json_object_set(dropped, "sockets", json_object_get(stats, "sockets_dropped"));
    json_object_set_new(capture->document, "events", stats);
    return 0;
}

static int write_trace(struct capture *capture, struct error *err)
{
    json_t *trace = NULL;
    if (!capture->tracing)
        return 0;
    int result = capture_trace_stop(&capture->trace, &trace, err);
    if (result < 0)
        return result;
    char text[200];
    json_t *truncated = json_object_get(trace, "truncated");
    if (json_integer_value(truncated)) {
        snprintf(text, sizeof text,
                 "the trace was cut %lld times because its buffer was full: --pt-buffer, or "
                 "--pt-detail light",
                 (long long)json_integer_value(truncated));
        capture_warn(capture, text);
    }
    json_object_set(json_object_get(capture->document, "dropped"), "trace", truncated);
    json_object_set_new(capture->document, "intel_pt", trace);
    return 0;
}

static int write_samples(struct capture *capture, struct error *err)
{
    char text[200];
    json_t *samples = NULL;
    if (!capture->sampling)
        return 0;
    int result = capture_samples_stop(&capture->samples, &samples, err);
    if (result < 0)
        return result;
    json_t *lost = json_object_get(samples, "lost"),
           *throttled = json_object_get(samples, "throttled");
    if (json_integer_value(lost) || json_integer_value(throttled)) {
        snprintf(text, sizeof text,
                 "samples are missing: %lld records lost, %lld times too many for the kernel; "
                 "take fewer, with --sample-rate",
                 (long long)json_integer_value(lost), (long long)json_integer_value(throttled));
        capture_warn(capture, text);
    }
    json_object_set(json_object_get(capture->document, "dropped"), "samples", lost);
    json_object_set_new(capture->document, "samples", samples);
    return 0;
}

static int write_functions(struct capture *capture, struct error *err)
{
    json_t *functions = NULL;
    if (!capture->functions)
        return 0;
    int result = function_recorder_stop(capture->functions, &functions, err);
    if (result < 0)
        return result;
    if (json_integer_value(json_object_get(functions, "dropped")))
        capture_warn(capture,
                     "records of functions were lost: the kernel's buffers were full; trace fewer, "
                     "with --functions");
    json_object_set(json_object_get(capture->document, "dropped"), "functions",
                    json_object_get(functions, "dropped"));
    json_object_set_new(capture->document, "functions", functions);
    return 0;
}

static int write_clock(struct capture *capture, struct error *err)
{
    char path[RUN_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/clock.tlog", capture->options.out);
    clock_recorder_settle(&capture->clock);
    int result = clock_recorder_write(&capture->clock, path, err);
    if (result == 0)
        json_object_set_new(capture->document, "clock",
                            json_pack("{s:I, s:I}", "knots", (json_int_t)capture->clock.knots,
                                      "interval_ns", (json_int_t)capture->clock.interval_ns));
    return result;
}

int capture_write(struct capture *capture, struct error *err)
{
    char cores[1024];
    struct run_folder folder;
    const struct capture_options *o = &capture->options;
    if (strlen(o->out) >= sizeof folder.path - 64)
        return error_set(err, ERROR_INPUT, "--out: the path is too long");
    snprintf(folder.path, sizeof folder.path, "%s", o->out);
    json_t *ports = json_array();
    for (size_t i = 0; i < o->port_count; i++)
        json_array_append_new(ports, json_integer(o->ports[i]));
    capture->document =
        json_pack("{s:s, s:o, s:s, s:{}, s:O}", "backend",
                  capture->tracing     ? "intel_pt"
                  : capture->sampling  ? "samples"
                  : capture->functions ? "functions"
                  : capture->events    ? "events"
                                       : "none",
                  "ports", ports, "cores",
                  CPU_COUNT(&o->cores) ? units_format_cores(&o->cores, cores, sizeof cores) : "all",
                  "dropped", "warnings", capture->warnings);
    if (!capture->document)
        return error_set(err, ERROR_FAILED, "out of memory");
    // What costs the server time for as long as it lasts ends first.
    int result = capture->tracing ? perf_recorder_disable(&capture->trace.recorder, err) : 0;
    if (result == 0 && capture->sampling)
        result = perf_recorder_disable(&capture->samples.recorder, err);
    if (result == 0 && capture->functions)
        result = function_recorder_disable(capture->functions, err);
    if (result == 0)
        result = write_events(capture, err);
    if (result == 0)
        result = write_functions(capture, err);
    if (result == 0)
        result = write_trace(capture, err);
    if (result == 0)
        result = write_samples(capture, err);
    if (result == 0)
        result = write_calls(capture, err);
    if (result == 0)
        result = write_clock(capture, err);
    return result < 0 ? result
                      : run_folder_write_json(&folder, "capture.json", capture->document, err);
}
