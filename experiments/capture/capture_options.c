// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_options.h"

#include <stdlib.h>
#include <string.h>

#include "experiments/capture/capture_backend.h"

#define CAPTURE_BACKEND_WORD(name) ", " #name

static const struct option_spec options[] = {
    OPTION_STRING("out", 'o', "DIR", struct capture_options, out, "where the logs go; needed"),
    OPTION_STRING("port", 'p', "LIST", struct capture_options, port_list,
                  "the servers' TCP ports, as in \"11211,6379\"; needed for kernel events and the "
                  "shim"),
    OPTION_STRING("backend", 'b', "NAME", struct capture_options, backend_name,
                  "auto (events and intel_pt where possible), none" CAPTURE_BACKENDS(
                      CAPTURE_BACKEND_WORD) ": a named one is needed"),
    OPTION_STRING(
        "functions", 0, "LIST", struct capture_options, functions,
        "kernel functions to trace, as in \"tcp_*,schedule\" (network, scheduler, calls)"),
    OPTION_COUNT("sample-rate", 0, "HZ", struct capture_options, sample_rate,
                 "samples a second of each core (3989)"),
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
    OPTION_STRING("perf", 0, "PROGRAM", struct capture_options, perf,
                  "the perf that records Intel PT or takes samples (in PATH)"),
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
               "PT or samples), clock.tlog and capture.json.\nConnections that are open already "
               "are looked up in the network namespace it runs in.",
    .options = options,
};

// Sets which backends are wanted and needed, as --backend says.
static int choose_backends(struct capture *capture, struct error *err)
{
    struct capture_options *o = &capture->options;
    const char *name = o->backend_name ? o->backend_name : capture_choice_name(0);
    unsigned choice = 0;
    while (capture_choice_name(choice) && strcmp(capture_choice_name(choice), name) != 0)
        choice++;
    if (!capture_choice_name(choice))
        return error_set(
            err, ERROR_INPUT,
            "--backend: \"%s\" is none of auto, none" CAPTURE_BACKENDS(CAPTURE_BACKEND_WORD), name);
    for (unsigned i = 0; i < CAPTURE_BACKENDS_COUNT; i++) {
        const struct capture_backend *backend = capture_backends[i];
        capture->needed[i] = choice == i + 1;
        capture->wanted[i] = capture->needed[i] || (choice == 0 && backend->is_auto) ||
                             (backend->is_always && capture_choice_records(choice));
        int result = backend->check(o, capture->needed[i], err);
        if (result < 0)
            return result;
    }
    o->no_events |= !capture_choice_records(choice);
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
    return 0;
}

int capture_read_options(struct capture *capture, int argc, char **argv, bool *help,
                         struct error *err)
{
    int positional = 0;
    int result = options_parse(&usage, argc, argv, &capture->options, &positional, help, err);
    return result < 0 || *help ? result : check_options(capture, positional, argv, err);
}
