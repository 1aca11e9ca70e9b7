// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_options.h"

#include <stdlib.h>
#include <string.h>

#include "experiments/capture/capture_backend.h"
#include "workloads/framing/framing_protocols.h"

#define CAPTURE_BACKEND_WORD(name) ", " #name

static const struct option_spec options[] = {
    OPTION_STRING("out", 'o', "DIR", struct capture_options, out, "where the logs go; needed"),
    OPTION_STRING("port", 'p', "LIST", struct capture_options, port_list,
                  "the servers' TCP ports, as in \"11211,6379\", with udp: before one for UDP too; "
                  "needed for kernel events and the shim"),
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
    OPTION_STRING(
        "nic", 0, "NAME", struct capture_options, nic,
        "the card by whose clock messages arrive, M(n), where it stamps every packet that "
        "it receives (by the kernel's clock, later)"),
    OPTION_CORES("client-cores", 0, "LIST", struct capture_options, client_cores,
                 "cores of a load on this host, for kernel events alone; with --backend none: "
                 "nothing else is recorded, and no port needed"),
    OPTION_STRING("shim", 0, "DIR", struct capture_options, shim,
                  "also collect the calls of servers started with TAILLIGHT_SHIM_DIR=DIR"),
    OPTION_FLAG("shim-in-environment", 0, struct capture_options, shim_in_environment,
                "the same, with DIR in TAILLIGHT_SHIM_DIR, where other users do not see it"),
    OPTION_STRING(
        "calls", 0, "WORD", struct capture_options, calls_word,
        "socket calls from the kernel, of any program as it runs: auto (where the shim does not "
        "work), kernel (beside the shim's, too), none"),
    OPTION_STRING("framing", 0, "PROTOCOL", struct capture_options, framing,
                  "redis, memcached or http: look at the first bytes of the socket calls that the "
                  "kernel has, and tell messages apart by them; nothing of them is kept"),
    OPTION_FLAG("commands", 0, struct capture_options, commands,
                "with the shim: note with which command, of a fixed list, begins what the servers "
                "receive, and nothing else of it"),
    OPTION_BYTES("shim-memory", 0, "BYTES", struct capture_options, shim_memory_bytes,
                 "for the shim's records, in all servers together (64MiB)"),
    OPTION_CORES("helper-cores", 0, "LIST", struct capture_options, helper_cores,
                 "where the capture's own work runs (anywhere)"),
    OPTION_BYTES("buffer", 0, "BYTES", struct capture_options, buffer_bytes,
                 "for kernel events, per recorded core (32MiB)"),
    OPTION_PERIOD("segment", 0, "TIME", struct capture_options, segment_ns,
                  "write a segment so often, and say so in a line on stdout (as needed)"),
    OPTION_BYTES("keep", 0, "BYTES", struct capture_options, keep_bytes,
                 "of a long capture, keep only its latest segments (all)"),
    OPTION_SHARE("budget", 0, "SHARE", struct capture_options, budget,
                 "with --segment, of a core for kernel events, as in 5%: where they take more, "
                 "only a part of each segment is recorded (as much as it takes)"),
    OPTION_FLAG("no-events", 0, struct capture_options, no_events, "record no kernel events"),
    OPTION_STRING("pt-detail", 0, "WORD", struct capture_options, trace.detail,
                  "Intel PT: light, normal or fine (normal)"),
    OPTION_BYTES("pt-buffer", 0, "BYTES", struct capture_options, trace.buffer_bytes,
                 "Intel PT: trace buffer per recorded core, a power of two (32MiB)"),
    OPTION_BYTES("pt-bytes", 0, "BYTES", struct capture_options, trace.most_bytes,
                 "Intel PT: end the trace when it has so many (1GiB unless --backend intel_pt)"),
    OPTION_CORES("pt-cores", 0, "LIST", struct capture_options, trace.cores,
                 "Intel PT: only of these (all that are recorded)"),
    OPTION_DURATION("pt-expect", 0, "TIME", struct capture_options, trace.expected_ns,
                    "Intel PT: for how long it will record, to check that it fits on the disk"),
    OPTION_FLAG("pt-waits", 0, struct capture_options, trace.waits,
                "Intel PT: begin at a line \"trace on\" on stdin; one \"trace off\" ends it"),
    OPTION_FLAG("pt-code", 0, struct capture_options, trace.code,
                "Intel PT: put the traced programs beside the trace, for another machine"),
    OPTION_COUNT("pt-keep", 0, "N", struct capture_options, trace.keep,
                 "with --snapshot: so many at most; more are counted, not taken"),
    OPTION_STRING("pt-event", 0, "EVENT", struct capture_options, trace.event,
                  "the perf event to record instead, as in \"intel_pt/noretcomp=1/u\""),
    OPTION_STRING("pid", 0, "LIST", struct capture_options, pids,
                  "the servers are these processes, as they run, and those they start; with "
                  "--backend intel_pt: a trace of them instead of cores"),
    OPTION_STRING("cgroup", 0, "LIST", struct capture_options, cgroups,
                  "the servers are the processes of these control groups, as a container's, also "
                  "those that come later"),
    OPTION_STRING("systemd", 0, "LIST", struct capture_options, units,
                  "the same of systemd's units"),
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
    .arguments = "--out DIR {--port PORT | --pid PID | --cgroup PATH} [options]",
    .summary =
        "Watches a server on this host: kernel events, function calls, socket calls, clocks.",
    .details = "Prints one line {\"ready\": true, \"warnings\": [...]} when everything is armed; "
               "stops at the end of its "
               "standard input (Ctrl-D), at SIGINT and at SIGTERM; then writes events.tlog, "
               "sockets.tlog, calls.tlog, "
               "connections.tlog, perf.data (Intel PT or samples), clock.tlog and capture.json. "
               "Connections that are "
               "open already are looked up in the network namespace it runs in.\n"
               "Exit codes: 0 done; 1 failed; 2 bad usage.",
    .options = options,
};

// Sets which backends are wanted and needed, as --backend says. With `none` the cores of a
// load are recorded all the same, where that is possible: this is not the server's host.
static int choose_backends(struct capture *capture, struct error *err)
{
    struct capture_options *o = &capture->options;
    const char *name = o->backend_name ? o->backend_name : capture_choice_name(0);
    // Else what the servers are; their cores are traced then, as always.
    o->trace.pids = o->trace.per_thread || strcmp(name, "intel_pt") == 0 ? o->pids : NULL;
    unsigned choice = 0;
    while (capture_choice_name(choice) && strcmp(capture_choice_name(choice), name) != 0)
        choice++;
    if (!capture_choice_name(choice))
        return error_set(
            err, ERROR_INPUT,
            "--backend: \"%s\" is none of auto, none" CAPTURE_BACKENDS(CAPTURE_BACKEND_WORD), name);
    o->client_alone = !capture_choice_records(choice) && CPU_COUNT(&o->client_cores) > 0;
    const bool events = capture_choice_records(choice) || o->client_alone;
    for (unsigned i = 0; i < CAPTURE_BACKENDS_COUNT; i++) {
        const struct capture_backend *backend = capture_backends[i];
        capture->needed[i] = choice == i + 1;
        capture->wanted[i] = capture->needed[i] || (choice == 0 && backend->is_auto) ||
                             (backend->is_always && events);
        int result = backend->check(o, capture->needed[i], err);
        if (result < 0)
            return result;
    }
    o->no_events |= !events;
    return 0;
}

static int take_ports(struct capture_options *o, struct error *err)
{
    const char *at = o->port_list ? o->port_list : "";
    while (*at) {
        char *end;
        bool datagrams = strncmp(at, "udp:", 4) == 0;
        at += datagrams ? 4 : 0;
        unsigned long port = strtoul(at, &end, 10);
        if (end == at || port < 1 || port > 65535 || (*end && *end != ',') ||
            (*end == ',' && !end[1]))
            return error_set(err, ERROR_INPUT,
                             "--port: \"%s\" is not a list of ports from 1 to 65535", o->port_list);
        if (o->port_count == RING_PORTS)
            return error_set(err, ERROR_INPUT, "--port: %d ports at most", RING_PORTS);
        o->ports[o->port_count++] = (uint16_t)port;
        o->datagrams |= datagrams;
        at = end + (*end == ',');
    }
    o->given_port_count = o->port_count;
    return 0;
}

static int choose_framing(struct capture_options *o, struct error *err)
{
    if (!o->framing)
        return 0;
    o->grammar = framing_find(o->framing);
    if (!o->grammar)
        return error_set(err, ERROR_INPUT, "--framing: \"%s\" is none of redis, memcached, http",
                         o->framing);
    if (o->shim)
        return error_set(err, ERROR_INPUT, "--framing is for captures without the shim");
    if (!o->kernel_calls)
        return error_set(err, ERROR_INPUT,
                         "--framing looks at the socket calls that the kernel has, which --calls "
                         "none, --no-events or --backend none excludes");
    return 0;
}

// Whether the kernel's events are to have the socket calls.
static int choose_calls(struct capture_options *o, struct error *err)
{
    unsigned calls = CAPTURE_CALLS_AUTO;
    while (o->calls_word && capture_calls_name(calls) &&
           strcmp(capture_calls_name(calls), o->calls_word) != 0)
        calls++;
    if (!capture_calls_name(calls))
        return error_set(err, ERROR_INPUT, "--calls: \"%s\" is none of auto, kernel, none",
                         o->calls_word);
    if (calls == CAPTURE_CALLS_KERNEL && (o->no_events || o->client_alone))
        return error_set(err, ERROR_INPUT,
                         "--calls kernel needs kernel events, which --no-events or --backend none "
                         "excludes");
    o->kernel_calls = calls != CAPTURE_CALLS_NONE && !o->no_events && !o->client_alone;
    o->leaves_to_shim = calls == CAPTURE_CALLS_AUTO && o->shim;
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
    if (o->shim_in_environment && !(o->shim = getenv("TAILLIGHT_SHIM_DIR")))
        return error_set(err, ERROR_INPUT,
                         "--shim-in-environment: there is no TAILLIGHT_SHIM_DIR in it");
    if (o->budget > 0 && !o->segment_ns)
        return error_set(err, ERROR_INPUT, "--budget is of each --segment: it needs one");
    if (choose_backends(capture, err) < 0)
        return -ERROR_INPUT;
    if (choose_calls(o, err) < 0 || choose_framing(o, err) < 0 || take_ports(o, err) < 0)
        return -ERROR_INPUT;
    if (o->datagrams && !o->shim)
        capture_warn(capture, "without the shim nothing is known of socket calls over UDP: "
                              "requests have no M(a) and no reply stamp");
    return 0;
}

int capture_options_read(struct capture *capture, int argc, char **argv, bool *help,
                         struct error *err)
{
    int positional = 0;
    int result = options_parse(&usage, argc, argv, &capture->options, &positional, help, err);
    return result < 0 || *help ? result : check_options(capture, positional, argv, err);
}
