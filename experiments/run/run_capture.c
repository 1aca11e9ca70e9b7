// SPDX-License-Identifier: MIT
//
// The phases that record: `taillight capture` on the server's host, and another one on the load's
// host where that may be another machine, of its clock and of what the load's cores did.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "experiments/capture/capture_backend.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/run/run_phases.h"
#include "experiments/run/run_trace.h"

enum {
    ARM_TIMEOUT_S = 60,    // to load its programs
    CAPTURE_GRACE_S = 240, // to write its logs
};

int run_wait_word(struct run *run, const struct host *host, struct process *capture,
                  const char *word, const char *what, const char *log_path, json_t **said,
                  struct error *err)
{
    struct text_buffer output = {0};
    int status = 0;
    bool far = host && host->kind->is_elsewhere;
    int result = supervisor_wait(&run->supervisor, capture, &output, true,
                                 supervisor_now_ns() + ARM_TIMEOUT_S * SECOND_NS, &status, err);
    json_t *line = run_first_line(&output);
    if (result >= 0 && json_is_true(json_object_get(line, word))) {
        size_t i;
        json_t *text;
        json_array_foreach(json_object_get(line, "warnings"), i, text)
            run_warn(run, "capture%s%s: %s", far ? " on host " : "", far ? host->plan->name : "",
                     json_string_value(text) ?: "a warning that is no text");
        result = 0;
    } else if (result > 0 && !capture->pid) {
        supervisor_death_error(&run->supervisor, err, what, status, log_path);
        if (run->experiment->capture_optional)
            err->kind = ERROR_INCONCLUSIVE;
        result = -(int)err->kind;
    } else if (result >= 0) {
        result = error_set(err, ERROR_FAILED, "%s does not say \"%s\" within %d s; see %s", what,
                           word, ARM_TIMEOUT_S, log_path);
    }
    if (said)
        *said = result == 0 ? json_incref(line) : NULL;
    json_decref(line);
    array_free(&output);
    return result;
}

static int wait_ready(struct run *run, const struct host *host, struct process *capture,
                      const char *what, const char *log_path, struct error *err)
{
    return run_wait_word(run, host, capture, "ready", what, log_path, NULL, err);
}

// The cores of the load that are on this machine; returns how many.
static int near_load_cores(struct run *run, cpu_set_t *out)
{
    const struct experiment_agent_array *agents = &run->experiment->load.agents;
    const size_t sources = agents->count ? agents->count : run->loader_count;
    CPU_ZERO(out);
    for (size_t i = 0; i < sources; i++) {
        const struct host *host =
            &run->hosts.items[agents->count ? agents->items[i].host : run->loaders[i].plan->from];
        if (!host->kind->is_elsewhere)
            CPU_OR(out, out, &host->plan->cores);
    }
    return CPU_COUNT(out);
}

// Those that the server's capture records.
static void load_cores_beside_server(struct run *run, cpu_set_t *out)
{
    CPU_ZERO(out);
    if (!run_server_host(run)->kind->is_elsewhere)
        near_load_cores(run, out);
}

// Those that a capture of their own records, on the load's host. Agents behind ssh are on hosts of
// their own, where none is made.
static int load_cores_apart(struct run *run, cpu_set_t *out)
{
    const struct host *load = run_load_host(run), *server = run_server_host(run);
    CPU_ZERO(out);
    if (run->load_here || load == server || !capture_choice_records(run->experiment->backend))
        return 0;
    if (load->kind->is_elsewhere)
        *out = load->plan->cores;
    else if (server->kind->is_elsewhere)
        near_load_cores(run, out);
    return CPU_COUNT(out);
}

// Memory for kernel events, per core of so many that are recorded. Unless the experiment gives it:
// enough that the ring is less than half full when the load ends, so that nothing has to drain it
// meanwhile; within 32 and 256 MiB a core, and 1 GiB in all. A load that would fill more is written
// to disk while it goes on, and needs no more than the least.
static uint64_t buffer_bytes(const struct run *run, int cores)
{
    enum { EVENTS_PER_REQUEST = 16, EVENT_BYTES = 32 };
    const struct experiment *experiment = run->experiment;
    if (experiment->buffer_bytes && !capture_traces(experiment->backend)) // then it is the trace's
        return experiment->buffer_bytes;
    double requests = 0;
    for (size_t i = 0; i < experiment_load_count(experiment); i++) {
        const struct experiment_load *load = experiment_load_at(experiment, i);
        requests += load->rate * load->workload.fanout * (double)load->duration_ns / 1e9;
    }
    double wanted = 2.0 * requests * EVENTS_PER_REQUEST * EVENT_BYTES;
    double most = (1 << 30) / (double)cores;
    most = most > 256 << 20 ? 256 << 20 : most;
    return wanted > 2 * most || wanted < 32 << 20 ? 32 << 20
           : wanted > most                        ? (uint64_t)most
                                                  : (uint64_t)wanted;
}

// The cores for our own work on a host.
static char *helper_cores(struct run *run, const struct host *host, char *out, size_t out_bytes)
{
    if (host->kind->is_elsewhere && run->log.dry) {
        snprintf(out, out_bytes, "CORES"); // only its machine knows which it has
        return out;
    }
    return units_format_cores(host->kind->is_elsewhere ? &host->helpers
                                                       : &run_load_host(run)->plan->cores,
                              out, out_bytes);
}

// The capture itself only knows whether any server has the shim.
static const char *calls_word(const struct run *run)
{
    const struct experiment *experiment = run->experiment;
    unsigned calls = experiment->capture_calls;
    for (size_t i = 0; i < experiment->servers.count && calls == CAPTURE_CALLS_AUTO; i++)
        if (!experiment->servers.items[i].shim)
            calls = CAPTURE_CALLS_KERNEL;
    if (calls == CAPTURE_CALLS_KERNEL && !capture_choice_records(experiment->backend))
        calls = CAPTURE_CALLS_NONE;
    return capture_calls_name(calls);
}

// The servers that run already: where their sockets are, also of processes that come later.
static void add_running(const struct run *run, struct command_line *line)
{
    const struct experiment_server_array *servers = &run->experiment->servers;
    for (size_t i = 0; i < servers->count; i++) {
        const struct experiment_server *server = &servers->items[i];
        if (server->pid)
            command_line_add_number(line, "--pid", server->pid);
        if (server->cgroup)
            command_line_add_option(line, "--cgroup", "%s", server->cgroup);
        if (server->systemd)
            command_line_add_option(line, "--systemd", "%s", server->systemd);
    }
}

// By whose clock messages arrive; NULL: the kernel's.
static const char *nic_of(struct run *run)
{
    const struct experiment *experiment = run->experiment;
    const char *named = run_server_host(run)->plan->nic;
    if (!capture_choice_records(experiment->backend))
        return NULL;
    return experiment->capture_nic                      ? experiment->capture_nic
           : strcmp(experiment->load.stamps, "hw") == 0 ? named
                                                        : NULL;
}

int run_start_capture(struct run *run, struct error *err)
{
    struct host *host = run_server_host(run);
    char ports[(6 + sizeof "udp:") * EXPERIMENT_SERVERS_MAX + 1], cores[256], helpers[256];
    char client_cores[256]; // the line keeps pointers to all of these
    struct run_trace_words words;
    struct command_line line = {.failed = false};
    progress_phase(run->progress, "arming the capture");
    run_folder_path(run->folder, "logs/capture.log", run->capture_log);
    for (size_t i = 0, used = 0; i < run->experiment->servers.count; i++)
        used += (size_t)snprintf(ports + used, sizeof ports - used, "%s%s%u", i ? "," : "",
                                 run->experiment->servers.items[i].over_udp ? "udp:" : "",
                                 run->experiment->servers.items[i].port);
    const char *const fixed[] = {
        "taillight",      "capture",
        "--out",          run->server_dir,
        "--port",         ports,
        "--cores",        units_format_cores(&host->plan->cores, cores, sizeof cores),
        "--helper-cores", helper_cores(run, host, helpers, sizeof helpers),
        "--backend",      capture_choice_name(run->experiment->backend),
        "--quiet",        NULL};
    command_line_add_list(&line, fixed);
    cpu_set_t clients, all;
    load_cores_beside_server(run, &clients);
    CPU_OR(&clients, &clients, &run->hops[STAMPED_SERVER].holders);
    if (CPU_COUNT(&clients))
        command_line_add_option(&line, "--client-cores", "%s",
                                units_format_cores(&clients, client_cores, sizeof client_cores));
    if (run->shim_dir[0])
        command_line_add(&line, "--shim-in-environment");
    command_line_add_option(&line, "--calls", "%s", calls_word(run));
    if (run->shim_dir[0] && run->experiment->capture_commands)
        command_line_add(&line, "--commands");
    if (nic_of(run))
        command_line_add_option(&line, "--nic", "%s", nic_of(run));
    add_running(run, &line);
    if (run->shim_dir[0] && run->experiment->shim_memory_bytes)
        command_line_add_number(&line, "--shim-memory", run->experiment->shim_memory_bytes);
    CPU_OR(&all, &clients, &host->plan->cores);
    command_line_add_number(&line, "--buffer", buffer_bytes(run, CPU_COUNT(&all)));
    run_add_trace(run, &words, &line);
    if (host->kind->is_elsewhere && capture_choice_records(run->experiment->backend))
        command_line_add(&line, "--pt-code");
    const struct run_command command = {.line = &line, .input = true, .log_path = run->capture_log};
    int result = run_start_command(run, host, &command, &run->capture, err);
    if (result == 0 && !run->log.dry)
        result = wait_ready(run, host, &run->capture, "the capture", run->capture_log, err);
    if (result < 0 || run->log.dry)
        return result;
    run->capturing = true;
    supervisor_watch(&run->supervisor, &run->capture, "the capture", run->capture_log);
    return 0;
}

int run_stop_capture(struct run *run, struct error *err)
{
    if (!run->capturing)
        return 0;
    progress_phase(run->progress, "writing what was captured");
    supervisor_unwatch(&run->supervisor, &run->capture);
    close(run->capture.input); // the end of its input makes it stop
    run->capture.input = -1;
    return supervisor_finish(&run->supervisor, &run->capture, "the capture", run->capture_log,
                             CAPTURE_GRACE_S, err);
}

// --- the client's clock and cores ----------------------------------------------------------------

static bool any_is_elsewhere(const struct run *run)
{
    for (size_t i = 0; i < run->hosts.count; i++)
        if (run->hosts.items[i].kind->is_elsewhere)
            return true;
    return false;
}

// Agents on other machines convert what they measure to the time of the load's host, so that one
// log is enough.
int run_start_clock(struct run *run, struct error *err)
{
    char log[LOG_PATH_BYTES], cores[256], helpers[256];
    struct host *host = run->load_here ? NULL : run_load_host(run);
    cpu_set_t clients;
    if (!any_is_elsewhere(run))
        return 0;
    const char *const words[] = {"taillight", "capture", "--out",   run->load_dir,
                                 "--backend", "none",    "--quiet", NULL};
    struct command_line line = {.failed = false};
    command_line_add_list(&line, words);
    if (load_cores_apart(run, &clients)) {
        CPU_OR(&clients, &clients, &run->hops[STAMPED_CLIENT].holders);
        command_line_add_option(&line, "--client-cores", "%s",
                                units_format_cores(&clients, cores, sizeof cores));
        command_line_add_option(&line, "--helper-cores", "%s",
                                helper_cores(run, host, helpers, sizeof helpers));
        command_line_add_number(&line, "--buffer", buffer_bytes(run, CPU_COUNT(&clients)));
    }
    run_folder_path(run->folder, "logs/client-clock.log", log);
    const struct run_command command = {.line = &line, .input = true, .log_path = log};
    int result = run_start_command(run, host, &command, &run->clock, err);
    return result == 0 && !run->log.dry
               ? wait_ready(run, host, &run->clock, "the client's capture", log, err)
               : result;
}

int run_stop_clock(struct run *run, struct error *err)
{
    char log[LOG_PATH_BYTES];
    if (run->clock.pid <= 0)
        return 0;
    close(run->clock.input);
    run->clock.input = -1;
    return supervisor_finish(&run->supervisor, &run->clock, "the client's capture",
                             run_folder_path(run->folder, "logs/client-clock.log", log),
                             CAPTURE_GRACE_S, err);
}
