// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_samples.h"

#include <stdio.h>
#include <string.h>

#include "analysis/perf/perf_data.h"

static const char perf_data_name[] = "perf.data";

int capture_samples_start(struct capture_samples *samples,
                          const struct capture_samples_options *options, const char *out_dir,
                          struct error *err)
{
    char log[sizeof samples->path];
    *samples = (struct capture_samples){.recorder.process = {.input = -1, .output = -1}};
    if (strlen(out_dir) + sizeof perf_data_name + 1 > sizeof samples->path)
        return error_set(err, ERROR_INPUT, "--out: the path is too long");
    sampling_find(options->perf, &samples->found);
    if (!samples->found.ready)
        return error_set(err, ERROR_FAILED, "cannot take samples: %s; needed: %s",
                         samples->found.reason, samples->found.how);
    unsigned allowed = sampling_most_allowed();
    samples->frequency = options->wanted ? (unsigned)options->wanted : SAMPLING_FREQUENCY;
    if (allowed && samples->frequency > allowed)
        samples->frequency = allowed;
    snprintf(samples->path, sizeof samples->path, "%s/%s", out_dir, perf_data_name);
    snprintf(log, sizeof log, "%s/perf.log", out_dir);
    const struct perf_recorder_settings settings = {
        .perf = samples->found.perf,
        .event = samples->found.event,
        .output = samples->path,
        .log = log,
        .cores = options->cores,
        .frequency = samples->frequency,
        .host_time = true,
    };
    int result = perf_recorder_start(&samples->recorder, &settings, err);
    return result < 0 ? result : perf_recorder_enable(&samples->recorder, err);
}

int capture_samples_stop(struct capture_samples *samples, json_t **document, struct error *err)
{
    struct perf_data data;
    struct perf_limits counts_only = perf_default_limits;
    counts_only.events = 0;
    int result = perf_recorder_stop(&samples->recorder, err);
    if (result == 0)
        result = perf_data_open(samples->path, &counts_only, &data, err);
    if (result < 0)
        return result;
    *document =
        json_pack("{s:s, s:s, s:i, s:s, s:I, s:I, s:I, s:I}", "perf_data", perf_data_name, "event",
                  samples->found.event, "frequency", (int)samples->frequency, "command",
                  samples->recorder.command, "samples", (json_int_t)data.counts[PERF_SAMPLE],
                  "lost", (json_int_t)(data.lost_records + data.lost_samples), "throttled",
                  (json_int_t)data.counts[PERF_THROTTLE], "complaints",
                  (json_int_t)(data.complaint_count - (data.events_over_limit > 0)));
    perf_data_free(&data);
    return *document ? 0 : error_set(err, ERROR_FAILED, "out of memory");
}
