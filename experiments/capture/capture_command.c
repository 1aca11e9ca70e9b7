// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_command.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/capture/capture_state.h"

enum {
    POLL_MS = 50, // rings of the default size last at least ten times as long
    CLOCK_INTERVAL_NS = 100 * 1000 * 1000,
    FUNCTIONS_BYTES = 16 << 20, // of each core
};

// --- arming --------------------------------------------------------------------------------------

static int open_signals(struct capture *capture, struct error *err)
{
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGHUP);
    sigaddset(&taken, SIGUSR1);
    sigprocmask(SIG_BLOCK, &taken, NULL);
    capture->signals = signalfd(-1, &taken, SFD_CLOEXEC);
    return capture->signals < 0 ? error_set_errno(err, ERROR_FAILED, "cannot listen for signals")
                                : 0;
}

void capture_warn(struct capture *capture, const char *text)
{
    fprintf(stderr, "warning: %s\n", text);
    json_array_append_new(capture->warnings, json_string(text));
}

static int open_events(struct capture *capture, struct error *err)
{
    const struct events_capture_settings settings = {.cores = capture->options.cores,
                                                     .ports = capture->options.ports,
                                                     .port_count = capture->options.port_count,
                                                     .ring_bytes = capture->options.buffer_bytes};
    char text[1200];
    if (capture->options.no_events)
        return 0;
    int result = events_capture_open(&settings, &capture->events, err);
    if (result < 0 && !capture->options.need_events) {
        snprintf(text, sizeof text, "no kernel events: %s", err->text);
        capture_warn(capture, text);
        return 0;
    }
    return result;
}

static int start_trace(struct capture *capture, struct error *err)
{
    char text[1200];
    if (!capture->trace_wanted)
        return 0;
    int result =
        capture_trace_start(&capture->trace, &capture->options.trace, capture->options.out, err);
    capture->tracing = result == 0;
    if (result < 0 && !capture->trace_needed) {
        snprintf(text, sizeof text, "no function calls: %s", err->text);
        if (!capture->trace.absent)
            capture_warn(capture, text);
        return 0;
    }
    return result;
}

static int start_samples(struct capture *capture, struct error *err)
{
    const struct capture_samples_options options = {
        .perf = capture->options.trace.perf,
        .cores = capture->options.cores,
        .wanted = (unsigned long)capture->options.sample_rate};
    char text[200];
    if (!capture->samples_wanted)
        return 0;
    int result = capture_samples_start(&capture->samples, &options, capture->options.out, err);
    capture->sampling = result == 0;
    if (result == 0 && capture->samples.frequency < capture->options.sample_rate) {
        snprintf(text, sizeof text, "%u samples a second are taken: the kernel allows no more",
                 capture->samples.frequency);
        capture_warn(capture, text);
    }
    return result;
}

static int start_functions(struct capture *capture, struct error *err)
{
    const struct function_tracer_settings settings = {.cores = capture->options.cores,
                                                      .patterns = capture->options.functions,
                                                      .buffer_bytes = FUNCTIONS_BYTES};
    return capture->functions_wanted
               ? function_recorder_start(&settings, capture->options.out, &capture->functions, err)
               : 0;
}

static void say_missing_programs(struct capture *capture)
{
    char text[600];
    const struct event_program_state *states =
        capture->events ? events_capture_programs(capture->events) : NULL;
    for (size_t i = 0; states && i < EVENT_PROGRAMS; i++) {
        if (states[i].attached)
            continue;
        snprintf(text, sizeof text, "no %s: %s", event_programs[i].gives, states[i].reason);
        capture_warn(capture, text);
    }
}

static int arm(struct capture *capture, struct error *err)
{
    const struct capture_options *o = &capture->options;
    if (mkdir(o->out, 0755) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", o->out);
    if (CPU_COUNT(&o->helper_cores) &&
        sched_setaffinity(0, sizeof o->helper_cores, &o->helper_cores) < 0)
        return error_set_errno(err, ERROR_INPUT, "--helper-cores: cannot run there");
    int result = open_signals(capture, err);
    if (result == 0)
        result =
            clock_recorder_start(&capture->clock, CLOCK_INTERVAL_NS, CLOCK_RECORDER_KNOTS, err);
    if (result == 0)
        clock_recorder_settle(&capture->clock);
    if (result == 0 && o->shim)
        result =
            message_collector_create(o->shim, 0, o->ports, o->port_count, &capture->collector, err);
    if (result == 0)
        result = open_events(capture, err);
    if (result == 0)
        result = start_trace(capture, err);
    if (result == 0)
        result = start_samples(capture, err);
    if (result == 0)
        result = start_functions(capture, err);
    if (result < 0)
        return result;
    say_missing_programs(capture);
    if (capture->collector)
        message_collector_enable(capture->collector);
    return 0;
}

// --- while it runs -------------------------------------------------------------------------------

// Prints one line; takes it over.
static int say(json_t *line, struct error *err)
{
    int written = line ? json_dumpf(line, stdout, JSON_COMPACT) : -1;
    json_decref(line);
    if (written < 0 || putchar('\n') == EOF || fflush(stdout) == EOF)
        return error_set_errno(err, ERROR_FAILED, "cannot print on standard output");
    return 0;
}

static int say_ready(const struct capture *capture, struct error *err)
{
    return say(json_pack("{s:b, s:b, s:b, s:b, s:b, s:b, s:O}", "ready", 1, "events",
                         capture->events != NULL, "intel_pt", capture->tracing, "functions",
                         capture->functions != NULL, "samples", capture->sampling, "shim",
                         capture->collector != NULL, "warnings", capture->warnings),
               err);
}

static int take_snapshot(struct capture *capture, struct error *err)
{
    if (!capture->tracing || !capture->options.trace.snapshot) {
        capture_warn(capture,
                     "a snapshot was asked for, but none can be taken: no --snapshot, or no trace");
        return 0;
    }
    int result = perf_recorder_snapshot(&capture->trace.recorder, err);
    return result < 0
               ? result
               : say(json_pack("{s:i}", "snapshot", (int)capture->trace.recorder.snapshots), err);
}

// Takes a part of standard input: at each line "snapshot", a snapshot.
static int take_input(struct capture *capture, const char *bytes, size_t count, struct error *err)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        if (bytes[i] != '\n') {
            if (capture->line_used < sizeof capture->line - 1)
                capture->line[capture->line_used++] = bytes[i];
            continue;
        }
        capture->line[capture->line_used] = '\0';
        capture->line_used = 0;
        if (strcmp(capture->line, "snapshot") == 0)
            result = take_snapshot(capture, err);
    }
    return result;
}

// Sleeps, or does what is asked for. 1: it is time to stop; 0: not yet.
static int wait_for_end(struct capture *capture, struct error *err)
{
    char bytes[256];
    struct pollfd ready[2] = {{.fd = 0, .events = POLLIN},
                              {.fd = capture->signals, .events = POLLIN}};
    if (poll(ready, 2, POLL_MS) <= 0)
        return 0;
    if (ready[1].revents) {
        struct signalfd_siginfo signal;
        bool trigger = read(capture->signals, &signal, sizeof signal) == sizeof signal &&
                       signal.ssi_signo == SIGUSR1;
        return trigger ? take_snapshot(capture, err) : 1;
    }
    ssize_t got = read(0, bytes, sizeof bytes);
    if (got > 0)
        return take_input(capture, bytes, (size_t)got, err);
    return got == 0 || (errno != EINTR && errno != EAGAIN);
}

static int watch(struct capture *capture, struct error *err)
{
    int result = 0;
    while (result == 0) {
        clock_recorder_poll(&capture->clock);
        if (capture->events)
            events_capture_poll(capture->events);
        if (capture->collector)
            result = message_collector_poll(capture->collector, err);
        if (result == 0 && capture->functions)
            result = function_recorder_poll(capture->functions, err);
        if (result == 0 && capture->tracing)
            result = perf_recorder_check(&capture->trace.recorder, err);
        if (result == 0 && capture->sampling)
            result = perf_recorder_check(&capture->samples.recorder, err);
        if (result == 0)
            result = wait_for_end(capture, err);
    }
    return result < 0 ? result : 0;
}

int capture_command(int argc, char **argv)
{
    struct error err = {0};
    struct capture capture = {.signals = -1};
    bool help = false;
    if (capture_take_options(&capture, argc, argv, &help, &err) < 0)
        return error_report(&err);
    if (help)
        return 0;
    progress_init(&capture.progress, capture.options.quiet);
    capture.warnings = json_array();
    progress_phase(&capture.progress, "arming the capture");
    int result = arm(&capture, &err);
    if (result == 0) {
        progress_phase(&capture.progress, "capturing; Ctrl-D or Ctrl-C ends it");
        result = say_ready(&capture, &err);
    }
    if (result == 0)
        result = watch(&capture, &err);
    if (result == 0) {
        progress_phase(&capture.progress, "writing what was captured");
        result = capture_write(&capture, &err);
    }
    progress_end(&capture.progress);
    perf_recorder_fini(&capture.trace.recorder);
    perf_recorder_fini(&capture.samples.recorder);
    function_recorder_free(capture.functions);
    events_capture_free(capture.events);
    message_collector_free(capture.collector);
    clock_recorder_free(&capture.clock);
    json_decref(capture.warnings);
    json_decref(capture.document);
    if (capture.signals >= 0)
        close(capture.signals);
    return result < 0 ? error_report(&err) : 0;
}
