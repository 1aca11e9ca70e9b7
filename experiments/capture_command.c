// SPDX-License-Identifier: MIT
#include "experiments/capture_command.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "base/progress.h"
#include "base/units.h"
#include "experiments/capture_trace.h"
#include "experiments/run_folder.h"
#include "profiler/clock_recorder.h"
#include "profiler/events_capture.h"
#include "profiler/function_recorder.h"
#include "shim/message_collector.h"
#include "shim/ring.h"

enum {
    POLL_MS = 50, // rings of the default size last at least ten times as long
    CLOCK_INTERVAL_NS = 100 * 1000 * 1000,
    FUNCTIONS_BYTES = 16 << 20, // of each core
};

struct capture_options {
    const char *out, *shim, *backend_name, *functions, *port_list;
    uint16_t ports[RING_PORTS];
    size_t port_count;
    uint64_t buffer_bytes;
    cpu_set_t cores, helper_cores;
    bool no_events, need_events, quiet;
    struct capture_trace_options trace;
};

static const struct option_spec options[] = {
    OPTION_STRING("out", 'o', "DIR", struct capture_options, out, "where the logs go; needed"),
    OPTION_STRING("port", 'p', "LIST", struct capture_options, port_list,
                  "the servers' TCP ports, as in \"11211,6379\"; needed for kernel events and the "
                  "shim"),
    OPTION_STRING(
        "backend", 'b', "NAME", struct capture_options, backend_name,
        "auto: events and intel_pt where possible; events, intel_pt or functions: or fail; none"),
    OPTION_STRING(
        "functions", 0, "LIST", struct capture_options, functions,
        "kernel functions to trace, as in \"tcp_*,schedule\" (network, scheduler, calls)"),
    OPTION_CORES("cores", 'c', "LIST", struct capture_options, cores,
                 "cores to record (all): \"0-2,5\""),
    OPTION_STRING("shim", 0, "DIR", struct capture_options, shim,
                  "also collect the calls of servers started with TAILLIGHT_SHIM_DIR=DIR"),
    OPTION_CORES("helper-cores", 0, "LIST", struct capture_options, helper_cores,
                 "where the capture's own work runs (anywhere)"),
    OPTION_BYTES("buffer", 0, "BYTES", struct capture_options, buffer_bytes,
                 "for kernel events, per recorded core (32MiB)"),
    OPTION_FLAG("no-events", 0, struct capture_options, no_events, "record no kernel events"),
    OPTION_STRING("pt-detail", 0, "WORD", struct capture_options, trace.detail,
                  "Intel PT: light, normal or fine (normal)"),
    OPTION_BYTES("pt-buffer", 0, "BYTES", struct capture_options, trace.buffer_bytes,
                 "Intel PT: trace buffer per recorded core, a power of two (32MiB)"),
    OPTION_STRING("pt-event", 0, "EVENT", struct capture_options, trace.event,
                  "the perf event to record instead, as in \"intel_pt/noretcomp=1/u\""),
    OPTION_STRING("pid", 0, "LIST", struct capture_options, trace.pids,
                  "Intel PT of these processes instead of cores"),
    OPTION_FLAG("per-thread", 0, struct capture_options, trace.per_thread,
                "with --pid: a trace for each thread instead of one for each core"),
    OPTION_FLAG("snapshot", 0, struct capture_options, trace.snapshot,
                "Intel PT: keep only the buffers; write them at each line \"snapshot\" on stdin, "
                "or SIGUSR1"),
    OPTION_STRING("perf", 0, "PROGRAM", struct capture_options, trace.perf,
                  "the perf that records Intel PT (in PATH)"),
    OPTION_FLAG("quiet", 'q', struct capture_options, quiet, "no progress on stderr"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "capture",
    .arguments = "--out DIR --port PORT [options]",
    .summary =
        "Watches a server on this host: kernel events, function calls, socket calls, clocks.",
    .details = "Prints one line {\"ready\": true, \"warnings\": [...]} when everything is armed; "
               "stops at the end of\nits standard input (Ctrl-D), at SIGINT and at SIGTERM; then "
               "writes events.tlog, sockets.tlog,\ncalls.tlog, connections.tlog, perf.data (Intel "
               "PT), clock.tlog and capture.json. Connections that\nare open already are looked "
               "up in the network namespace it runs in.",
    .options = options,
};

struct capture {
    struct capture_options options;
    struct progress progress;
    struct events_capture *events;       // NULL: none
    struct message_collector *collector; // NULL: none
    struct capture_trace trace;
    bool tracing, trace_needed, trace_wanted;
    bool functions_wanted;
    struct function_recorder *functions; // NULL: none
    struct clock_recorder clock;
    json_t *warnings, *document;
    int signals;
    char line[64]; // of standard input, as far as it was read
    size_t line_used;
};

// What --backend means for the two that can be chosen.
static int choose_backends(struct capture *capture, struct error *err)
{
    struct capture_options *o = &capture->options;
    const char *name = o->backend_name ? o->backend_name : "auto";
    capture->trace_needed = strcmp(name, "intel_pt") == 0;
    capture->trace_wanted = capture->trace_needed || strcmp(name, "auto") == 0;
    capture->functions_wanted = strcmp(name, "functions") == 0;
    if (capture->functions_wanted)
        return 0;
    if (o->functions)
        return error_set(err, ERROR_INPUT, "--functions is for --backend functions");
    if (strcmp(name, "events") == 0)
        o->need_events = true;
    else if (strcmp(name, "none") == 0)
        o->no_events = true;
    else if (!capture->trace_wanted)
        return error_set(err, ERROR_INPUT,
                         "--backend: \"%s\" is not auto, intel_pt, functions, events or none",
                         name);
    return 0;
}

static int take_ports(struct capture_options *o, struct error *err)
{
    const char *at = o->port_list ? o->port_list : "";
    while (*at) {
        char *end;
        unsigned long port = strtoul(at, &end, 10);
        if (end == at || port < 1 || port > 65535 || (*end && *end != ',') ||
            (*end == ',' && !end[1]))
            return error_set(err, ERROR_INPUT,
                             "--port: \"%s\" is not a list of ports from 1 to 65535", o->port_list);
        if (o->port_count == RING_PORTS)
            return error_set(err, ERROR_INPUT, "--port: %d ports at most", RING_PORTS);
        o->ports[o->port_count++] = (uint16_t)port;
        at = end + (*end == ',');
    }
    if (o->port_count == 0 && (!o->no_events || o->shim))
        return error_set(err, ERROR_INPUT, "--port is needed, from 1 to 65535");
    return 0;
}

static int check_options(struct capture *capture, int positional, char **argv, struct error *err)
{
    struct capture_options *o = &capture->options;
    if (positional > 0)
        return error_set(err, ERROR_INPUT,
                         "%s: capture takes only options; see taillight capture --help", argv[1]);
    if (!o->out)
        return error_set(err, ERROR_INPUT, "--out DIR is needed");
    if (choose_backends(capture, err) < 0)
        return -ERROR_INPUT;
    if (take_ports(o, err) < 0)
        return -ERROR_INPUT;
    if (o->no_events && o->need_events)
        return error_set(err, ERROR_INPUT, "events are both asked for and excluded");
    o->trace.cores = o->cores;
    return capture_trace_check(&o->trace, err);
}

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

static void warn(struct capture *capture, const char *text)
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
        warn(capture, text);
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
            warn(capture, text);
        return 0;
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
        warn(capture, text);
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
    return say(json_pack("{s:b, s:b, s:b, s:b, s:b, s:O}", "ready", 1, "events",
                         capture->events != NULL, "intel_pt", capture->tracing, "functions",
                         capture->functions != NULL, "shim", capture->collector != NULL, "warnings",
                         capture->warnings),
               err);
}

static int take_snapshot(struct capture *capture, struct error *err)
{
    if (!capture->tracing || !capture->options.trace.snapshot) {
        warn(capture,
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
        if (result == 0)
            result = wait_for_end(capture, err);
    }
    return result < 0 ? result : 0;
}

// --- writing -------------------------------------------------------------------------------------

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
            warn(capture, stats.warning);
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
        warn(capture, text);
    }
    json_object_set(json_object_get(capture->document, "dropped"), "trace", truncated);
    json_object_set_new(capture->document, "intel_pt", trace);
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
        warn(capture,
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

// capture.json goes last: its being there says that the logs are whole.
static int write_out(struct capture *capture, struct error *err)
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
    if (result == 0 && capture->functions)
        result = function_recorder_disable(capture->functions, err);
    if (result == 0)
        result = write_events(capture, err);
    if (result == 0)
        result = write_functions(capture, err);
    if (result == 0)
        result = write_trace(capture, err);
    if (result == 0)
        result = write_calls(capture, err);
    if (result == 0)
        result = write_clock(capture, err);
    return result < 0 ? result
                      : run_folder_write_json(&folder, "capture.json", capture->document, err);
}

int capture_command(int argc, char **argv)
{
    struct error err = {0};
    struct capture capture = {.signals = -1};
    int positional = 0;
    bool help = false;
    if (options_parse(&usage, argc, argv, &capture.options, &positional, &help, &err) < 0 ||
        (!help && check_options(&capture, positional, argv, &err) < 0))
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
        result = write_out(&capture, &err);
    }
    progress_end(&capture.progress);
    perf_recorder_fini(&capture.trace.recorder);
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
