// SPDX-License-Identifier: MIT
//
// The `samples` backend of `taillight capture`: perf interrupts the recorded cores so many times a
// second and notes where they were and who had called that, into <out>/perf.data, while the other
// backends record what they can. Times are of CLOCK_MONOTONIC_RAW, which is the run's host time, so
// that a sample falls into the spans of the events beside it without conversion.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/perf/perf_data.h"
#include "base/input_file.h"
#include "base/new_file.h"
#include "base/text.h"
#include "experiments/capture/capture_backend.h"
#include "experiments/capture/recording_end.h"
#include "experiments/common/run_folder.h"
#include "profiler/trace/perf_recorder.h"

struct samples {
    struct perf_recorder recorder;
    struct capture *capture;
    struct recording_end end;
    struct sampling found;
    unsigned frequency;             // no more than the kernel allows
    char path[RUN_PATH_BYTES + 32]; // of the recording
};

static const char perf_data_name[] = "perf.data";

static int samples_begin(struct samples *samples, struct capture *capture, struct error *err)
{
    const struct capture_options *options = &capture->options;
    char log[sizeof samples->path];
    *samples =
        (struct samples){.recorder.process = {.input = -1, .output = -1}, .capture = capture};
    if (strlen(options->out) + sizeof perf_data_name + 1 > sizeof samples->path)
        return error_set(err, ERROR_INPUT, "--out: the path is too long");
    sampling_find(options->perf, &samples->found);
    if (!samples->found.ready)
        return error_set(err, ERROR_FAILED, "cannot take samples: %s; needed: %s",
                         samples->found.reason, samples->found.how);
    unsigned allowed = sampling_most_allowed();
    samples->frequency = options->sample_rate ? (unsigned)options->sample_rate : SAMPLING_FREQUENCY;
    if (allowed && samples->frequency > allowed)
        samples->frequency = allowed;
    snprintf(samples->path, sizeof samples->path, "%s/%s", options->out, perf_data_name);
    snprintf(log, sizeof log, "%s/perf.log", options->out);
    const struct perf_recorder_settings settings = {
        .perf = samples->found.perf,
        .event = samples->found.event,
        .output = samples->path,
        .log = log,
        .cores = capture->cores,
        .frequency = samples->frequency,
        .host_time = true,
        .mapped_ids = true,
        .interrupted = &capture->interrupted,
    };
    int result = perf_recorder_start(&samples->recorder, &settings, err);
    return result < 0 ? result : perf_recorder_enable(&samples->recorder, err);
}

// The addresses of the kernel's functions are for who has rights, and those of this boot: they are
// kept for who analyzes, without rights, later or elsewhere.
static void keep_kallsyms(const char *out)
{
    char path[RUN_PATH_BYTES + 32];
    struct new_file copy;
    struct error ignored;
    FILE *from = input_stream("/proc/kallsyms", &ignored);
    snprintf(path, sizeof path, "%s/kallsyms", out);
    if (from && new_file_open(&copy, path, &ignored) == 0) {
        char text[65536];
        size_t got, written = 0;
        bool told = true; // to others all addresses are 0
        while (told && (got = fread(text, 1, sizeof text, from)) > 0) {
            told = strspn(text, "0") < 8;
            written += fwrite(text, 1, got, copy.file);
        }
        new_file_finish(&copy, told && written ? 0 : -ERROR_FAILED, &ignored);
    }
    if (from)
        fclose(from);
}

// What there is of the recording, at its end or before. NULL: no memory.
static json_t *samples_document(const struct samples *samples)
{
    return json_pack("{s:s, s:s, s:i, s:s}", "perf_data", perf_data_name, "event",
                     samples->found.event, "frequency", (int)samples->frequency, "command",
                     samples->recorder.command);
}

// lost: samples and other records that perf did not get; throttled: how often the kernel took no
// samples for a while because there were too many.
static void count_recorded(struct samples *samples, json_t *document)
{
    struct perf_data data;
    struct error problem;
    struct perf_limits counts_only = perf_default_limits;
    counts_only.events = 0;
    if (perf_data_open(samples->path, &counts_only, &data, &problem) < 0) {
        recording_end_broken(&samples->end, &problem);
        return;
    }
    json_object_update_new(
        document, json_pack("{s:I, s:I, s:I, s:I}", "samples", (json_int_t)data.counts[PERF_SAMPLE],
                            "lost", (json_int_t)(data.lost_records + data.lost_samples),
                            "throttled", (json_int_t)data.counts[PERF_THROTTLE], "complaints",
                            (json_int_t)(data.complaint_count - (data.events_over_limit > 0))));
    perf_data_free(&data);
}

static int samples_finish(struct samples *samples, json_t **document, struct error *err)
{
    struct error problem;
    if (!samples->end.broken && perf_recorder_stop(&samples->recorder, &problem) < 0)
        recording_end_broken(&samples->end, &problem);
    *document = samples_document(samples);
    if (!*document)
        return error_set(err, ERROR_FAILED, "out of memory");
    count_recorded(samples, *document);
    recording_end_say(&samples->end, *document);
    return 0;
}

static int samples_check(const struct capture_options *options, bool chosen, struct error *err)
{
    if (options->sample_rate && !chosen)
        return error_set(err, ERROR_INPUT, "--sample-rate is for --backend samples");
    if (options->sample_rate > SAMPLING_FREQUENCY_MOST)
        return error_set(err, ERROR_INPUT, "--sample-rate: at most %d a second",
                         SAMPLING_FREQUENCY_MOST);
    return 0;
}

static int samples_start(struct capture *capture, bool needed, void **state, struct error *err)
{
    char text[200];
    struct samples *samples = calloc(1, sizeof *samples);
    (void)needed;
    if (!samples)
        return error_set(err, ERROR_FAILED, "out of memory");
    *state = samples;
    int result = samples_begin(samples, capture, err);
    if (result == 0)
        keep_kallsyms(capture->options.out);
    if (result == 0 && samples->frequency < capture->options.sample_rate) {
        snprintf(text, sizeof text, "%s samples a second are taken: the kernel allows no more",
                 TEXT_COUNT(samples->frequency));
        capture_warn(capture, text);
    }
    return result;
}

static int samples_poll(void *state, struct error *err)
{
    struct samples *samples = state;
    struct error problem;
    char text[800];
    (void)err;
    if (samples->end.broken || perf_recorder_check(&samples->recorder, &problem) == 0)
        return 0;
    recording_end_broken(&samples->end, &problem);
    snprintf(text, sizeof text, "the samples end before the capture: %.600s", samples->end.why);
    capture_warn(samples->capture, text);
    return 0;
}

// The rest stands in what perf has written by then.
static json_t *samples_so_far(void *state, json_t *dropped)
{
    (void)dropped;
    return samples_document(state);
}

// perf writes its rest while the other backends write theirs.
static int samples_disable(void *state, struct error *err)
{
    struct samples *samples = state;
    struct error problem;
    (void)err;
    if (!samples->end.broken && (perf_recorder_disable(&samples->recorder, &problem) < 0 ||
                                 perf_recorder_end(&samples->recorder, &problem) < 0))
        recording_end_broken(&samples->end, &problem);
    return 0;
}

static int samples_stop(struct capture *capture, void *state, json_t *dropped, json_t **document,
                        struct error *err)
{
    char text[800];
    struct samples *samples = state;
    bool was_ended = samples->end.why[0];
    int result = samples_finish(samples, document, err);
    if (result < 0)
        return result;
    if (samples->end.why[0] && !was_ended) {
        snprintf(text, sizeof text, "the samples may not be whole: %.600s", samples->end.why);
        capture_warn(capture, text);
    }
    json_t *lost = json_object_get(*document, "lost"),
           *throttled = json_object_get(*document, "throttled");
    if (json_integer_value(lost) || json_integer_value(throttled)) {
        snprintf(text, sizeof text,
                 "samples are missing: %s records lost, %s times too many for the kernel; take "
                 "fewer, with --sample-rate",
                 TEXT_COUNT(json_integer_value(lost)), TEXT_COUNT(json_integer_value(throttled)));
        capture_warn(capture, text);
    }
    json_object_set(dropped, "samples", lost);
    return 0;
}

static void samples_free(void *state)
{
    perf_recorder_fini(&((struct samples *)state)->recorder);
    free(state);
}

const struct capture_backend backend_samples = {
    .name = "samples",
    .help = "where the cores were, so many times a second, by perf",
    .lack = "no samples",
    .files = "perf.data, kallsyms",
    .examine = doctor_check_samples,
    .check = samples_check,
    .start = samples_start,
    .poll = samples_poll,
    .kept = backend_keeps_nothing,
    .ring_bytes = backend_keeps_nothing,
    .cut = backend_needs_no_cut,
    .so_far = samples_so_far,
    .disable = samples_disable,
    .stop = samples_stop,
    .free = samples_free,
    .add_followed = backend_adds_no_core,
    .follow = backend_has_fixed_cores,
    .watch = backend_watches_cores,
    .leave_calls = backend_records_no_calls,
    .thread_here = backend_knows_no_thread,
    .turn = backend_records_always,
    .charge = backend_has_no_budget,
    .take_snapshot = backend_takes_no_snapshot,
};
