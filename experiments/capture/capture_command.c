// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_command.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_numbers.h"
#include "base/process.h"
#include "base/units.h"
#include "experiments/capture/capture_backend.h"
#include "experiments/capture/capture_document.h"
#include "experiments/capture/capture_segments.h"
#include "profiler/listening_ports.h"
#include "experiments/common/program_path.h"
#include "experiments/common/run_folder.h"
#include "experiments/common/supervisor.h"
#include "experiments/remote/deployment.h"
#include "profiler/receive_cores.h"
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
    OPTION_STRING(
        "calls", 0, "WORD", struct capture_options, calls_word,
        "socket calls from the kernel, of any program as it runs: auto (where the shim does not "
        "work), kernel (beside the shim's, too), none"),
    OPTION_STRING("framing", 0, "PROTOCOL", struct capture_options, framing,
                  "redis, memcached or http: look at the first bytes of the socket calls that the "
                  "kernel has, and tell messages apart by them; nothing of them is kept"),
    OPTION_FLAG("shim-in-environment", 0, struct capture_options, shim_in_environment,
                "the same, with DIR in TAILLIGHT_SHIM_DIR, where other users do not see it"),
    OPTION_FLAG("commands", 0, struct capture_options, commands,
                "with the shim: note with which command, of a fixed list, begins what the servers "
                "receive, and nothing else of it"),
    OPTION_BYTES("shim-memory", 0, "BYTES", struct capture_options, shim_memory_bytes,
                 "for the shim's records, in all servers together (64MiB)"),
    OPTION_CORES("helper-cores", 0, "LIST", struct capture_options, helper_cores,
                 "where the capture's own work runs (anywhere)"),
    OPTION_BYTES("buffer", 0, "BYTES", struct capture_options, buffer_bytes,
                 "for kernel events, per recorded core (32MiB)"),
    OPTION_DURATION("segment", 0, "TIME", struct capture_options, segment_ns,
                    "write a segment so often, and say so in a line on stdout (as needed)"),
    OPTION_BYTES("keep", 0, "BYTES", struct capture_options, keep_bytes,
                 "of a long capture, keep only its latest segments (all)"),
    OPTION_COUNT("full", 0, "RATE", struct capture_options, full_rate,
                 "with --segment: while a core has more requests a second, nine of ten segments do "
                 "without hand-offs, departures and softirqs (never)"),
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

// Adds the ports on which the servers that are named otherwise listen by now.
static int take_found_ports(struct capture *capture, const struct listening *found, size_t count,
                            struct error *err)
{
    struct capture_options *o = &capture->options;
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (size_t k = 0; k < o->port_count; k++)
            known |= o->ports[k] == found[i].port;
        if (!known && o->port_count == RING_PORTS)
            return error_set(err, ERROR_INPUT, "the servers listen on more than %d ports",
                             RING_PORTS);
        if (!known)
            o->ports[o->port_count++] = found[i].port;
    }
    return 0;
}

// Finds the servers that run already. Those of a control group may come later.
static int find_servers(struct capture *capture, struct error *err)
{
    struct capture_options *o = &capture->options;
    if (o->pids || o->cgroups || o->units) {
        int result = running_servers_open(o->pids, o->cgroups, o->units, &capture->running, err);
        if (result == 0)
            result = running_servers_look(capture->running, &capture->found, err);
        if (result == 0)
            result = take_found_ports(capture, capture->found.items, capture->found.count, err);
        if (result < 0)
            return result;
    }
    // An experiment is quiet, and may start its servers later.
    char lack[200];
    if (!o->quiet && !o->client_alone && listening_ports_lack(o->port_list, lack, sizeof lack))
        capture_warn(capture, lack);
    if (o->port_count || ((o->no_events || o->client_alone) && !o->shim))
        return 0;
    if (!capture->running)
        return error_set(err, ERROR_INPUT,
                         "--port is needed, from 1 to 65535, or --pid, --cgroup or --systemd");
    if (!o->cgroups && !o->units)
        return error_set(err, ERROR_INPUT, "--pid %s: no process of these listens on a TCP port",
                         o->pids);
    capture_warn(capture, "no process of these control groups listens on a TCP port yet");
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
    if (choose_backends(capture, err) < 0)
        return -ERROR_INPUT;
    if (choose_calls(o, err) < 0 || choose_framing(o, err) < 0 || take_ports(o, err) < 0)
        return -ERROR_INPUT;
    if (o->datagrams && !o->shim)
        capture_warn(capture, "without the shim nothing is known of socket calls over UDP: "
                              "requests have no M(a) and no reply stamp");
    return find_servers(capture, err);
}

// Reads the command line into capture->options and what follows from it. *help: it asks for help
// only, which was printed.
static int read_options(struct capture *capture, int argc, char **argv, bool *help,
                        struct error *err)
{
    int positional = 0;
    int result = options_parse(&usage, argc, argv, &capture->options, &positional, help, err);
    return result < 0 || *help ? result : check_options(capture, positional, argv, err);
}

// --- its end: the logs, and capture.json, which says what was recorded and what was lost
// ----------

static int write_calls(struct capture *capture, struct error *err)
{
    struct message_stats stats;
    if (!capture->collector)
        return 0;
    const char *out = capture->segments.stopped ? NULL : capture->options.out;
    int result = message_collector_finish(capture->collector, out, &stats, err);
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

// Cores that are recorded by now though nobody asked for them.
static void add_followed(const struct capture *capture, cpu_set_t *out)
{
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        if (capture->states[i])
            capture_backends[i]->add_followed(capture->states[i], out);
}

// Takes `others` away from *cores; returns how many are left.
static int take_away_cores(cpu_set_t *cores, const cpu_set_t *others)
{
    cpu_set_t both;
    CPU_AND(&both, cores, others);
    CPU_XOR(cores, cores, &both);
    return CPU_COUNT(cores);
}

// Has every backend follow to the cores that deliver or serve by now.
static int follow_cores(struct capture *capture, struct error *err)
{
    cpu_set_t found, added;
    CPU_ZERO(&found);
    add_followed(capture, &found);
    if (CPU_COUNT(&capture->cores) == 0 || take_away_cores(&found, &capture->cores) == 0)
        return 0;
    added = found;
    if (take_away_cores(&added, &capture->followed) == 0)
        return 0;
    capture->followed = found;
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++) {
        int result =
            capture->states[i] ? capture_backends[i]->follow(capture->states[i], &found, err) : 1;
        if (result < 0)
            return result;
        capture->fixed[i] = result == 0;
    }
    return 0;
}

// Says which cores delivered or served that a backend did not record.
static void warn_of_cores_outside(struct capture *capture)
{
    char text[1400], cores[1024];
    if (CPU_COUNT(&capture->followed) == 0 || capture->options.trace.pids)
        return;
    units_format_cores(&capture->followed, cores, sizeof cores);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++) {
        if (!capture->fixed[i])
            continue;
        snprintf(
            text, sizeof text,
            "%s of core%s %s, which received or ran the server during the capture: to be named "
            "with --cores",
            capture_backends[i]->lack, CPU_COUNT(&capture->followed) > 1 ? "s" : "", cores);
        capture_warn(capture, text);
    }
}

static int write_backends(struct capture *capture, struct error *err)
{
    int result = 0;
    json_t *dropped = json_object_get(capture->document, "dropped");
    result = follow_cores(capture, err);
    // First ends what costs the server time as long as it goes on.
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
        if (capture->states[i])
            result = capture_backends[i]->disable(capture->states[i], err);
    warn_of_cores_outside(capture);
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

// Ends what records and writes all logs, capture.json last: its being there says that they are
// whole.
static int write_capture(struct capture *capture, struct error *err)
{
    struct error too_many;
    take_found_ports(capture, capture->found.items, capture->found.count, &too_many);
    int result = capture_document_begin(capture, err);
    if (result == 0)
        result = write_backends(capture, err);
    if (result == 0)
        result = write_calls(capture, err);
    if (result == 0)
        clock_recorder_settle(&capture->clock);
    if (result == 0)
        result = capture_document_write_clock(capture, err);
    return result < 0 ? result : capture_document_write(capture, err);
}

enum {
    POLL_MS = 50, // rings of the default size last at least ten times as long
    CLOCK_INTERVAL_NS = 100 * 1000 * 1000,
};

// --- arming --------------------------------------------------------------------------------------

// Whether a backend is to be started that does not find out which cores deliver.
static bool wants_told_cores(const struct capture *capture)
{
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        if (capture->wanted[i] && !capture_backends[i]->is_always)
            return true;
    return false;
}

// Adds the cores that are to receive: those that deliver within a moment where something arrives
// already, and those of the devices' settings, unless they are so many that it tells nothing.
static void widen_cores(struct capture *capture)
{
    enum { LOOK_NS = 50000000, MOST = 8 };
    cpu_set_t seen, told;
    capture->cores = capture->options.cores;
    if (CPU_COUNT(&capture->cores) == 0 || !wants_told_cores(capture))
        return;
    CPU_ZERO(&told);
    receive_cores_find("", &told);
    nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    CPU_ZERO(&seen);
    add_followed(capture, &seen);
    if (take_away_cores(&told, &capture->cores) <= MOST)
        CPU_OR(&seen, &seen, &told);
    CPU_OR(&capture->cores, &capture->cores, &seen);
}

static int start_backend(struct capture *capture, size_t i, struct error *err)
{
    const struct capture_backend *backend = capture_backends[i];
    char text[1200];
    if (!capture->wanted[i])
        return 0;
    int result = backend->start(capture, capture->needed[i], &capture->states[i], err);
    if (result == 0 || capture->needed[i] || process_is_interrupted())
        return result;
    if (capture->states[i])
        backend->free(capture->states[i]);
    capture->states[i] = NULL;
    snprintf(text, sizeof text, "%s: %s", backend->lack, err->text);
    capture_warn(capture, text);
    return 0;
}

static void tell_backends(struct capture *capture, uint32_t process, uint16_t port)
{
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        if (capture->states[i])
            capture_backends[i]->watch(capture->states[i], process, port);
}

// The kernel's record of socket calls is for servers in which the shim does not work: static ones,
// or such as make no calls of libc's.
static void leave_calls_to_shim(struct capture *capture)
{
    uint32_t process = 1;
    while (capture->collector && capture->options.leaves_to_shim && process) {
        process = message_collector_next_serving(capture->collector);
        for (size_t i = 0; process && i < CAPTURE_BACKENDS_COUNT; i++)
            if (capture->states[i])
                capture_backends[i]->leave_calls(capture->states[i], process);
    }
}

// Tells the backends of the processes that the shim is in by now, and of servers that ran already.
// Ports that were given beside those are of this network namespace.
static void watch_processes(struct capture *capture)
{
    const struct listening_array *found = &capture->found;
    const struct capture_options *o = &capture->options;
    for (size_t i = 0; capture->running && !capture->found_watched && i < o->given_port_count; i++)
        tell_backends(capture, (uint32_t)getpid(), o->ports[i]);
    for (; capture->found_watched < found->count; capture->found_watched++)
        tell_backends(capture, (uint32_t)found->items[capture->found_watched].process,
                      found->items[capture->found_watched].port);
    size_t count = capture->collector ? message_collector_attached(capture->collector) : 0;
    for (; capture->watched < count; capture->watched++)
        tell_backends(capture, message_collector_process(capture->collector, capture->watched), 0);
    leave_calls_to_shim(capture);
}

// Looks for servers that came since the last look.
static int look_for_servers(struct capture *capture, struct error *err)
{
    enum { LOOK_NS = 500000000 };
    int64_t now = monotonic_ns();
    if (!capture->running || now - capture->looked_ns < LOOK_NS)
        return 0;
    capture->looked_ns = now;
    size_t before = capture->found.count;
    int result = running_servers_look(capture->running, &capture->found, err);
    watch_processes(capture);
    for (size_t i = before; i < capture->found.count && result == 0; i++)
        result = json_print_new(json_pack("{s:{s:i, s:i}}", "found", "port",
                                          (int)capture->found.items[i].port, "process",
                                          (int)capture->found.items[i].process),
                                JSON_COMPACT, "a line", err);
    return result;
}

static uint32_t thread_here(void *context, uint64_t namespace, uint32_t inside)
{
    struct capture *capture = context;
    uint32_t found = 0;
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && !found; i++)
        if (capture->states[i])
            found = capture_backends[i]->thread_here(capture->states[i], namespace, inside);
    return found;
}

// Whether this program was put onto a host behind ssh for one run. There each of its programs has a
// far end of its own, and no tree of processes holds them all.
static bool is_deployed(void)
{
    char path[RUN_PATH_BYTES];
    struct error err = {0};
    if (program_path_self(path, sizeof path - sizeof DEPLOYMENT_ADOPTED, &err) < 0)
        return false;
    memcpy(strrchr(path, '/') + 1, DEPLOYMENT_ADOPTED, sizeof DEPLOYMENT_ADOPTED);
    return access(path, F_OK) == 0;
}

static int arm_capture(struct capture *capture, struct error *err)
{
    const struct capture_options *o = &capture->options;
    if (mkdir(o->out, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", o->out);
    if (sched_getaffinity(0, sizeof capture->machine, &capture->machine) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot find out which cores there are");
    if (CPU_COUNT(&o->helper_cores) &&
        sched_setaffinity(0, sizeof o->helper_cores, &o->helper_cores) < 0)
        return error_set_errno(err, ERROR_INPUT, "--helper-cores: cannot run there");
    capture_segments_begin(capture);
    capture->signals = supervisor_open_signals(SIGUSR1, NULL, err);
    int result = capture->signals < 0 ? capture->signals : 0;
    if (result == 0)
        result =
            clock_recorder_start(&capture->clock, CLOCK_INTERVAL_NS, CLOCK_RECORDER_KNOTS, err);
    if (result == 0)
        clock_recorder_settle(&capture->clock);
    network_counters_read(&capture->network);
    quota_counters_read(&capture->quotas);
    if (result == 0 && !is_deployed())
        result = process_family_read(&capture->own) < 0
                     ? error_set(err, ERROR_FAILED, "out of memory")
                     : 0;
    if (result == 0 && o->shim)
        result = message_collector_create(o->shim, o->shim_memory_bytes, o->ports, o->port_count,
                                          &capture->collector, err);
    if (result == 0 && o->shim)
        message_collector_watch_peers(capture->collector);
    if (result == 0 && o->shim && o->commands)
        message_collector_watch_commands(capture->collector);
    // The one that follows cores first: it shows the others where to look.
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
        result = capture_backends[i]->is_always ? start_backend(capture, i, err) : 0;
    widen_cores(capture);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
        result = capture_backends[i]->is_always ? 0 : start_backend(capture, i, err);
    if (result < 0)
        return result;
    // Who is there already is known before anything is recorded of others, and before the load.
    if (capture->collector)
        result = message_collector_poll(capture->collector, err);
    watch_processes(capture);
    if (!capture->collector)
        return result;
    message_collector_ask(capture->collector, thread_here, capture);
    message_collector_enable(capture->collector);
    return result;
}

// --- while it runs -------------------------------------------------------------------------------

static int print_ready(const struct capture *capture, struct error *err)
{
    json_t *line = json_pack("{s:b, s:b, s:O}", "ready", 1, "shim", capture->collector != NULL,
                             "warnings", capture->warnings);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        json_object_set_new(line, capture_backends[i]->name,
                            json_boolean(capture->states[i] != NULL));
    return json_print_new(line, JSON_COMPACT, "a line", err);
}

static int take_snapshot(struct capture *capture, struct error *err)
{
    int number = 0, result = 0;
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
        if (capture->states[i])
            result = capture_backends[i]->take_snapshot(capture, capture->states[i], &number, err);
    if (result == 0)
        capture_warn(capture, "a snapshot was asked for, but none can be taken: no --snapshot, or "
                              "no trace");
    return result > 0
               ? json_print_new(json_pack("{s:i}", "snapshot", number), JSON_COMPACT, "a line", err)
               : result;
}

static int turn_trace(struct capture *capture, bool on, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result >= 0; i++)
        if (capture->states[i])
            result = capture_backends[i]->turn(capture->states[i], on, err);
    return result < 0 ? result : 0;
}

// Reads bytes of standard input: each line "snapshot" takes a snapshot, "trace on" and "trace off"
// begin and end the trace.
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
        else if (strcmp(capture->line, "trace on") == 0 || strcmp(capture->line, "trace off") == 0)
            result = turn_trace(capture, strcmp(capture->line, "trace on") == 0, err);
    }
    return result;
}

// Waits for a command on stdin or a signal, for POLL_MS at most. Returns 1 when it is time to stop,
// else 0.
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

static int watch_until_end(struct capture *capture, struct error *err)
{
    int result = 0;
    while (result == 0) {
        clock_recorder_poll(&capture->clock);
        for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
            if (capture->states[i])
                result = capture_backends[i]->poll(capture->states[i], err);
        if (result == 0)
            result = follow_cores(capture, err);
        if (result == 0 && capture->collector)
            result = message_collector_poll(capture->collector, err);
        if (result == 0)
            result = look_for_servers(capture, err);
        watch_processes(capture);
        if (result == 0)
            result = capture_segments_poll(capture, err);
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
    capture.warnings = json_array();
    if (read_options(&capture, argc, argv, &help, &err) < 0 || help) {
        json_decref(capture.warnings);
        running_servers_free(capture.running);
        array_free(&capture.found);
        return help ? 0 : error_report(&err);
    }
    progress_init(&capture.progress, capture.options.quiet);
    progress_phase(&capture.progress, "arming the capture");
    int result = arm_capture(&capture, &err);
    if (result == 0) {
        progress_phase(&capture.progress, "capturing; Ctrl-D or Ctrl-C ends it");
        result = print_ready(&capture, &err);
    }
    if (result == 0)
        result = watch_until_end(&capture, &err);
    if (result == 0) {
        progress_phase(&capture.progress, "writing what was captured");
        result = write_capture(&capture, &err);
    }
    progress_end(&capture.progress);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        if (capture.states[i])
            capture_backends[i]->free(capture.states[i]);
    array_free(&capture.own);
    message_collector_free(capture.collector);
    running_servers_free(capture.running);
    array_free(&capture.found);
    clock_recorder_free(&capture.clock);
    capture_segments_free(&capture.segments);
    json_decref(capture.warnings);
    json_decref(capture.document);
    if (capture.signals >= 0)
        close(capture.signals);
    return result < 0 ? error_report(&err) : 0;
}
