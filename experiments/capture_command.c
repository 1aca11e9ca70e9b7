// SPDX-License-Identifier: MIT
#include "experiments/capture_command.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "base/progress.h"
#include "base/units.h"
#include "experiments/run_folder.h"
#include "profiler/clock_recorder.h"
#include "profiler/events_capture.h"
#include "shim/message_collector.h"

enum {
    POLL_MS = 50, // rings of the default size last at least ten times as long
    CLOCK_INTERVAL_NS = 100 * 1000 * 1000,
};

struct capture_options {
    const char *out, *shim;
    uint64_t port, buffer_bytes;
    cpu_set_t cores, helper_cores;
    bool no_events, need_events, quiet;
};

static const struct option_spec options[] = {
    OPTION_STRING("out", 'o', "DIR", struct capture_options, out, "where the logs go; needed"),
    OPTION_COUNT("port", 'p', "PORT", struct capture_options, port,
                 "the server's TCP port; needed"),
    OPTION_CORES("cores", 'c', "LIST", struct capture_options, cores,
                 "cores to record (all): \"0-2,5\""),
    OPTION_STRING("shim", 0, "DIR", struct capture_options, shim,
                  "also collect the calls of servers started with TAILLIGHT_SHIM_DIR=DIR"),
    OPTION_CORES("helper-cores", 0, "LIST", struct capture_options, helper_cores,
                 "where the capture's own work runs (anywhere)"),
    OPTION_BYTES("buffer", 0, "BYTES", struct capture_options, buffer_bytes,
                 "for kernel events, per recorded core (32MiB)"),
    OPTION_FLAG("no-events", 0, struct capture_options, no_events, "record no kernel events"),
    OPTION_FLAG("need-events", 0, struct capture_options, need_events,
                "fail where kernel events cannot be recorded, instead of going on without"),
    OPTION_FLAG("quiet", 'q', struct capture_options, quiet, "no progress on stderr"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "capture",
    .arguments = "--out DIR --port PORT [options]",
    .summary = "Watches a server on this host: kernel events, socket calls, clocks.",
    .details = "Prints one line {\"ready\": true, \"warnings\": [...]} when everything is armed; "
               "stops at the end of\nits standard input (Ctrl-D), at SIGINT and at SIGTERM; then "
               "writes events.tlog, sockets.tlog,\ncalls.tlog, connections.tlog, clock.tlog and "
               "capture.json. Connections that are open already\nare looked up in the network "
               "namespace it runs in.",
    .options = options,
};

struct capture {
    struct capture_options options;
    struct progress progress;
    struct events_capture *events;       // NULL: none
    struct message_collector *collector; // NULL: none
    struct clock_recorder clock;
    json_t *warnings, *document;
    int signals;
};

static int check_options(const struct capture_options *o, int positional, char **argv,
                         struct error *err)
{
    if (positional > 0)
        return error_set(err, ERROR_INPUT,
                         "%s: capture takes only options; see taillight capture --help", argv[1]);
    if (!o->out)
        return error_set(err, ERROR_INPUT, "--out DIR is needed");
    if (o->port < 1 || o->port > 65535)
        return error_set(err, ERROR_INPUT, "--port is needed, from 1 to 65535");
    if (o->no_events && o->need_events)
        return error_set(err, ERROR_INPUT, "--no-events and --need-events exclude each other");
    return 0;
}

// --- arming --------------------------------------------------------------------------------------

static int open_signals(struct capture *capture, struct error *err)
{
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGHUP);
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
    const uint16_t port = (uint16_t)capture->options.port;
    const struct events_capture_settings settings = {.cores = capture->options.cores,
                                                     .ports = &port,
                                                     .port_count = 1,
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
    if (result == 0 && o->shim)
        result = message_collector_create(o->shim, 0, (uint16_t)o->port, &capture->collector, err);
    if (result == 0)
        result = open_events(capture, err);
    if (result < 0)
        return result;
    say_missing_programs(capture);
    if (capture->collector)
        message_collector_enable(capture->collector);
    return 0;
}

// --- while it runs -------------------------------------------------------------------------------

static int say_ready(const struct capture *capture, struct error *err)
{
    json_t *line = json_pack("{s:b, s:b, s:b, s:O}", "ready", 1, "events", capture->events != NULL,
                             "shim", capture->collector != NULL, "warnings", capture->warnings);
    int written = line ? json_dumpf(line, stdout, JSON_COMPACT) : -1;
    json_decref(line);
    if (written < 0 || putchar('\n') == EOF || fflush(stdout) == EOF)
        return error_set_errno(err, ERROR_FAILED, "cannot say that the capture is ready");
    return 0;
}

// Sleeps; true when it is time to stop.
static bool wait_for_end(const struct capture *capture)
{
    char waste[256];
    struct pollfd ready[2] = {{.fd = 0, .events = POLLIN},
                              {.fd = capture->signals, .events = POLLIN}};
    if (poll(ready, 2, POLL_MS) <= 0)
        return false;
    if (ready[1].revents)
        return true;
    ssize_t got = ready[0].revents ? read(0, waste, sizeof waste) : 1;
    return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
}

static int watch(struct capture *capture, struct error *err)
{
    do {
        clock_recorder_poll(&capture->clock);
        if (capture->events)
            events_capture_poll(capture->events);
        int result = capture->collector ? message_collector_poll(capture->collector, err) : 0;
        if (result < 0)
            return result;
    } while (!wait_for_end(capture));
    return 0;
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

static int write_clock(struct capture *capture, struct error *err)
{
    char path[RUN_PATH_BYTES + 32];
    snprintf(path, sizeof path, "%s/clock.tlog", capture->options.out);
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
    capture->document =
        json_pack("{s:s, s:i, s:s, s:{}, s:O}", "backend", capture->events ? "events" : "none",
                  "port", (int)o->port, "cores",
                  CPU_COUNT(&o->cores) ? units_format_cores(&o->cores, cores, sizeof cores) : "all",
                  "dropped", "warnings", capture->warnings);
    if (!capture->document)
        return error_set(err, ERROR_FAILED, "out of memory");
    // The events first: their programs cost the server time for as long as they are attached.
    int result = write_events(capture, err);
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
        (!help && check_options(&capture.options, positional, argv, &err) < 0))
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
    events_capture_free(capture.events);
    message_collector_free(capture.collector);
    clock_recorder_free(&capture.clock);
    json_decref(capture.warnings);
    json_decref(capture.document);
    if (capture.signals >= 0)
        close(capture.signals);
    return result < 0 ? error_report(&err) : 0;
}
