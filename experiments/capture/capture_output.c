// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_output.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "experiments/capture/capture_backend.h"
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

static int write_backends(struct capture *capture, struct error *err)
{
    int result = 0;
    json_t *dropped = json_object_get(capture->document, "dropped");
    // First ends what costs the server time as long as it goes on.
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
        if (capture->states[i])
            result = capture_backends[i]->disable(capture->states[i], err);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++) {
        json_t *document = NULL;
        if (!capture->states[i])
            continue;
        result = capture_backends[i]->stop(capture, capture->states[i], dropped, &document, err);
        if (result == 0)
            json_object_set_new(capture->document, capture_backends[i]->name, document);
    }
    return result;
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
    const char *name = "none";
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        name = capture->states[i] ? capture_backends[i]->name : name;
    capture->document =
        json_pack("{s:s, s:o, s:s, s:{}, s:O}", "backend", name, "ports", ports, "cores",
                  CPU_COUNT(&o->cores) ? units_format_cores(&o->cores, cores, sizeof cores) : "all",
                  "dropped", "warnings", capture->warnings);
    if (!capture->document)
        return error_set(err, ERROR_FAILED, "out of memory");
    int result = write_backends(capture, err);
    if (result == 0)
        result = write_calls(capture, err);
    if (result == 0)
        result = write_clock(capture, err);
    return result < 0 ? result
                      : run_folder_write_json(&folder, "capture.json", capture->document, err);
}
