// SPDX-License-Identifier: MIT
#include "experiments/run/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "experiments/common/program_path.h"
#include "experiments/run/run_state.h"
#include "experiments/servers/server_kind.h"
#include "experiments/hosts/tuning.h"
#include "profiler/doctor/doctor.h"

enum { ARM_TIMEOUT_S = 60, CAPTURE_GRACE_S = 240 }; // to load its programs; to write its logs

struct host *run_server_host(struct run *run)
{
    return &run->hosts.items[run->experiment->servers.items[run->experiment->load.to].host];
}

struct host *run_load_host(struct run *run)
{
    return &run->hosts.items[run->experiment->load.from];
}

void run_warn(struct run *run, const char *format, ...)
{
    char text[1200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    progress_end(run->progress);
    if (!run->progress->quiet)
        fprintf(stderr, "warning: %s\n", text);
    command_log_write(&run->log, "run", "warning: %s", text);
    json_array_append_new(run->outcome->warnings, json_string(text));
}

int run_start_command(struct run *run, struct host *host, const char *const *argv, bool input,
                      const char *directory, const char *log_path, struct process *process,
                      struct error *err)
{
    char described[2000];
    struct process_place place = {.netns = NULL};
    if (host && host->kind == HOST_KIND_SSH && host != run_load_host(run))
        place = host_place(host, &host->far.helpers);
    else if (host)
        place = host_place(host, &run_load_host(run)->plan->cores);
    place.dry = run->log.dry;
    place.log_path = log_path;
    place.directory = directory;
    place.pipe_input = input;
    place.pipe_output = true;
    int result = host ? host_start_process(host, argv, &place, process, err)
                      : process_start(process, argv, &place, err);
    command_log_write(&run->log, host ? host->plan->name : "run", "%s%s",
                      process_describe(argv, described, sizeof described),
                      result < 0 ? ": failed" : "");
    return result;
}

// --- before anything is started ------------------------------------------------------------------

static bool is_far(const struct experiment *experiment, size_t host)
{
    return experiment->hosts.items[host].kind == HOST_KIND_SSH;
}

static int check_server_program(const struct experiment_server *server, struct error *err)
{
    return server->kind->check_program(server, err) < 0
               ? error_prefix(err, "the server `%s`", server->name)
               : 0;
}

static int check_neighbour_program(const struct experiment_neighbour *neighbour, struct error *err)
{
    const struct server_kind *kind = neighbour->kind->server;
    const struct experiment_server server = {.kind = kind};
    int result =
        kind ? kind->check_program(&server, err)
        : program_exists(neighbour->command.items[0])
            ? 0
            : error_set(err, ERROR_FAILED, "there is no command `%s`", neighbour->command.items[0]);
    return result < 0 ? error_prefix(err, "the neighbour `%s`", neighbour->name) : 0;
}

static int check_programs(const struct experiment *experiment, struct error *err)
{
    int result = 0;
    // What a host behind ssh lacks shows when it is to be started there.
    if (experiment->hosts.items[0].kind == HOST_KIND_NETNS && !program_exists("ip"))
        return error_set(err, ERROR_FAILED,
                         "there is no command `ip`; install it: apt-get install "
                         "iproute2");
    for (size_t i = 0; i < experiment->servers.count && result == 0; i++)
        if (!is_far(experiment, experiment->servers.items[i].host))
            result = check_server_program(&experiment->servers.items[i], err);
    for (size_t i = 0; i < experiment->neighbours.count && result == 0; i++)
        if (!is_far(experiment, experiment->neighbours.items[i].host))
            result = check_neighbour_program(&experiment->neighbours.items[i], err);
    return result;
}

static int write_experiment(struct run *run, struct error *err)
{
    json_t *document = experiment_to_json(run->experiment);
    if (!document)
        return error_set(err, ERROR_FAILED, "out of memory");
    json_object_set(document, "warnings", run->outcome->warnings);
    json_object_set(document, "tuned", run->tuned);
    json_object_set(document, "neighbour_loads", run->neighbour_loads);
    json_object_set(document, "server_cpu", run->server_cpu);
    for (size_t i = 0; i < run->hosts.count; i++) {
        json_t *host =
            json_object_get(json_object_get(document, "hosts"), run->hosts.items[i].plan->name);
        json_object_set_new(host, "kind", json_string(host_kind_name(run->hosts.items[i].kind)));
        json_object_set_new(host, "address", json_string(run->hosts.items[i].address));
        run_tell_host(&run->hosts.items[i], host);
    }
    int result = run_folder_write_json(&run->outcome->folder, "experiment.json", document, err);
    json_decref(document);
    return result;
}

// --- phases, in their order ----------------------------------------------------------------------

// What a dry run can say of that: the question to hosts behind ssh, which has no answer yet.
static int ask_host(struct run *run, struct host *host, struct error *err)
{
    struct process none;
    return host->kind == HOST_KIND_SSH ? run_ask_facts(run, host, &none, err) : 0;
}

static int ask_around(struct run *run, struct error *err)
{
    struct host *first = run_server_host(run);
    int result = ask_host(run, first, err);
    for (size_t i = 0; i < run->hosts.count && result == 0; i++)
        if (&run->hosts.items[i] != first)
            result = ask_host(run, &run->hosts.items[i], err);
    return result;
}

// facts.json: what the server's machine is and can measure.
static int look_around(struct run *run, struct error *err)
{
    bool far = run_server_host(run)->kind == HOST_KIND_SSH;
    progress_phase(run->progress, "looking at what %s machine can measure",
                   far ? "the server's" : "this");
    err->kind = ERROR_NONE;
    json_t *facts = far ? run_far_facts(run, run_server_host(run), err) : doctor_facts_json();
    if (!facts)
        return err->kind ? -(int)err->kind : error_set(err, ERROR_FAILED, "out of memory");
    int result = run_folder_write_json(&run->outcome->folder, "facts.json", facts, err);
    json_decref(facts);
    return result == 0 ? run_look_at_others(run, err) : result;
}

static int start_hosts(struct run *run, struct error *err)
{
    struct error degraded;
    progress_phase(run->progress, "making %zu host%s", run->experiment->hosts.count,
                   run->experiment->hosts.count == 1 ? "" : "s");
    int result =
        hosts_start(&run->hosts, run->experiment, &run->outcome->folder, &run->log, &degraded, err);
    if (result == 0 && degraded.kind != ERROR_NONE)
        run_warn(run, "%s; hosts are this machine instead, over 127.0.0.1, and share its network",
                 degraded.text);
    if (result == 0)
        run_watch_links(run);
    return result;
}

static int tune(struct run *run, struct error *err)
{
    size_t i;
    json_t *one;
    if (run->experiment->settings.count)
        progress_phase(run->progress, "tuning");
    int result = tuning_apply(&run->hosts, run->experiment, "", &run->log, run->tuned, err);
    json_array_foreach(run->tuned, i, one) if (!json_is_true(json_object_get(one, "applied")))
        run_warn(run, "tuning: %s %s is not set on host %s: %s",
                 json_string_value(json_object_get(one, "setting")),
                 json_string_value(json_object_get(one, "path")),
                 json_string_value(json_object_get(one, "host")),
                 json_string_value(json_object_get(one, "reason")));
    return result;
}

// Rings of the shim live in shared memory; the server's keeper removes them however the run ends.
static int make_shim_directory(struct run *run, struct error *err)
{
    bool wanted = false;
    for (size_t i = 0; i < run->experiment->servers.count; i++)
        wanted |= run->experiment->servers.items[i].shim;
    if (!wanted)
        return 0;
    int result = host_program(run_server_host(run), "libtaillight-shim.so", run->shim, err);
    if (result < 0)
        return result;
    snprintf(run->shim_dir, sizeof run->shim_dir, "/dev/shm/taillight-%d-%llx", getpid(),
             (unsigned long long)supervisor_now_ns());
    result = keeper_make_directory(&run_server_host(run)->keeper, run->shim_dir, err);
    if (result < 0)
        run->shim_dir[0] = '\0';
    return result;
}

static int start_server(struct run *run, size_t number, struct error *err)
{
    char path[LOG_PATH_BYTES], name[100];
    const struct experiment_server *plan = &run->experiment->servers.items[number];
    bool shim = plan->shim && run->shim_dir[0];
    progress_phase(run->progress, "starting the server `%s`", plan->name);
    snprintf(name, sizeof name, "logs/server-%s.log", plan->name);
    run_folder_path(&run->outcome->folder, name, path);
    const struct server_surroundings around = {.host = &run->hosts.items[plan->host],
                                               .from = run_load_host(run),
                                               .shim_path = shim ? run->shim : NULL,
                                               .shim_dir = shim ? run->shim_dir : NULL,
                                               .log_path = path,
                                               .folder = &run->outcome->folder,
                                               .supervisor = &run->supervisor,
                                               .log = &run->log};
    return server_start(&run->servers[number], plan, &around, err);
}

static int start_servers(struct run *run, struct error *err)
{
    int result = make_shim_directory(run, err);
    for (size_t i = 0; i < run->experiment->servers.count && result == 0; i++)
        result = start_server(run, i, err);
    return result;
}

json_t *run_first_line(const struct text_buffer *output)
{
    const char *end = output->count ? memchr(output->items, '\n', output->count) : NULL;
    return end ? json_loadb(output->items, (size_t)(end - output->items), 0, NULL) : NULL;
}

int run_wait_ready(struct run *run, struct process *capture, const char *what, const char *log_path,
                   struct error *err)
{
    struct text_buffer output = {0};
    int status = 0;
    bool far = run_server_host(run)->kind == HOST_KIND_SSH;
    int result = supervisor_wait(&run->supervisor, capture, &output, true,
                                 supervisor_now_ns() + ARM_TIMEOUT_S * SECOND_NS, &status, err);
    json_t *line = run_first_line(&output);
    if (result >= 0 && json_is_true(json_object_get(line, "ready"))) {
        size_t i;
        json_t *text;
        json_array_foreach(json_object_get(line, "warnings"), i, text)
            run_warn(run, "capture%s%s: %s", far ? " on host " : "",
                     far ? run_server_host(run)->plan->name : "", json_string_value(text));
        result = 0;
    } else if (result > 0 && !capture->pid) {
        result = supervisor_end_error(err, what, status, log_path);
        if (run->experiment->capture_optional)
            err->kind = ERROR_INCONCLUSIVE;
        result = -(int)err->kind;
    } else if (result >= 0) {
        result = error_set(err, ERROR_FAILED, "%s is not ready after %d s; see %s", what,
                           ARM_TIMEOUT_S, log_path);
    }
    json_decref(line);
    array_free(&output);
    return result;
}

// Memory for kernel events, per core of the server. Unless the experiment says: enough that the
// ring is not half full when the load ends, so that nobody drains it meanwhile, within reason.
static uint64_t buffer_bytes(struct run *run)
{
    enum { EVENTS_PER_REQUEST = 16, EVENT_BYTES = 32 };
    const struct experiment *experiment = run->experiment;
    if (experiment->buffer_bytes)
        return experiment->buffer_bytes;
    double wanted = 2.0 * experiment->load.rate * (double)experiment->load.duration_ns / 1e9 *
                    EVENTS_PER_REQUEST * EVENT_BYTES;
    double most = (1 << 30) / (double)CPU_COUNT(&run_server_host(run)->plan->cores);
    most = most > 256 << 20 ? 256 << 20 : most;
    return wanted > most ? (uint64_t)most : wanted < 32 << 20 ? 32 << 20 : (uint64_t)wanted;
}

// Where our own work for the server's host runs.
static char *helper_cores(struct run *run, char *out, size_t out_bytes)
{
    const struct host *host = run_server_host(run);
    if (host->kind == HOST_KIND_SSH && run->log.dry) {
        snprintf(out, out_bytes, "CORES"); // its machine tells which it has
        return out;
    }
    return units_format_cores(host->kind == HOST_KIND_SSH ? &host->far.helpers
                                                          : &run_load_host(run)->plan->cores,
                              out, out_bytes);
}

static int start_capture(struct run *run, struct error *err)
{
    struct host *host = run_server_host(run);
    char program[RUN_PATH_BYTES], ports[6 * EXPERIMENT_SERVERS_MAX + 1], cores[256], helpers[256],
        buffer[32];
    const char *argv[24];
    size_t n = 0;
    progress_phase(run->progress, "arming the capture");
    run_folder_path(&run->outcome->folder, "logs/capture.log", run->capture_log);
    for (size_t i = 0, used = 0; i < run->experiment->servers.count; i++)
        used += (size_t)snprintf(ports + used, sizeof ports - used, "%s%u", i ? "," : "",
                                 run->experiment->servers.items[i].port);
    const char *const fixed[] = {
        program,          "capture",
        "--out",          run->server_dir,
        "--port",         ports,
        "--cores",        units_format_cores(&host->plan->cores, cores, sizeof cores),
        "--helper-cores", helper_cores(run, helpers, sizeof helpers),
        "--backend",      capture_backend_name(run->experiment->backend),
        "--quiet"};
    for (; n < sizeof fixed / sizeof *fixed; n++)
        argv[n] = fixed[n];
    if (run->shim_dir[0]) {
        argv[n++] = "--shim";
        argv[n++] = run->shim_dir;
    }
    snprintf(buffer, sizeof buffer, "%llu", (unsigned long long)buffer_bytes(run));
    argv[n++] = "--buffer";
    argv[n++] = buffer;
    argv[n] = NULL;
    int result = host_program(host, "taillight", program, err);
    if (result == 0)
        result =
            run_start_command(run, host, argv, true, NULL, run->capture_log, &run->capture, err);
    if (result == 0 && !run->log.dry)
        result = run_wait_ready(run, &run->capture, "the capture", run->capture_log, err);
    if (result < 0 || run->log.dry)
        return result;
    run->capturing = true;
    supervisor_watch(&run->supervisor, &run->capture, "the capture", run->capture_log);
    return 0;
}

static int stop_capture(struct run *run, struct error *err)
{
    int status;
    if (!run->capturing)
        return 0;
    progress_phase(run->progress, "writing what was captured");
    supervisor_unwatch(&run->supervisor, &run->capture);
    close(run->capture.input); // its sign to stop
    run->capture.input = -1;
    int result = supervisor_wait(&run->supervisor, &run->capture, NULL, false,
                                 supervisor_now_ns() + CAPTURE_GRACE_S * SECOND_NS, &status, err);
    if (result == 0)
        return error_set(err, ERROR_FAILED, "the capture does not end; see %s", run->capture_log);
    if (result > 0 && status != 0)
        return supervisor_end_error(err, "the capture", status, run->capture_log);
    return result < 0 ? result : 0;
}

// --- the whole -----------------------------------------------------------------------------------

static int run_phases(struct run *run, struct error *err)
{
    int (*const phases[])(struct run *, struct error *) = {
        start_hosts,   look_around,          tune,         write_experiment, run_choose_directories,
        start_servers, run_start_neighbours, run_prepare,  start_capture,    run_start_clock,
        run_load,      run_stop_clock,       stop_capture, run_fetch,        write_experiment};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        int result = phases[i](run, err);
        if (result < 0)
            return result;
    }
    return 0;
}

// Ends whatever runs, in the reverse order of its start, and undoes every change.
static int tear_down(struct run *run, struct error *err)
{
    run_end_neighbours(run);
    process_stop(&run->load, STOP_GRACE_MS);
    process_stop(&run->clock, STOP_GRACE_MS);
    process_stop(&run->capture, STOP_GRACE_MS);
    for (size_t i = run->experiment->servers.count; i-- > 0;)
        server_stop(&run->servers[i], &run->supervisor);
    run_unwatch_links(run);
    return hosts_end(&run->hosts, &run->log, err);
}

// What would be done, into the log, in its order.
static int run_dry(struct run *run, FILE *out, struct error *err)
{
    struct error ignored;
    int (*const phases[])(struct run *, struct error *) = {start_hosts,
                                                           ask_around,
                                                           tune,
                                                           run_choose_directories,
                                                           start_servers,
                                                           run_start_neighbours,
                                                           run_prepare,
                                                           start_capture,
                                                           run_start_clock,
                                                           run_load,
                                                           run_fetch};
    run->log = (struct command_log){.file = out, .dry = true};
    int result = 0;
    for (size_t i = 0; i < sizeof phases / sizeof *phases && result == 0; i++)
        result = phases[i](run, err);
    tear_down(run, &ignored);
    return result;
}

static int run_in_folder(struct run *run, struct error *err)
{
    char path[LOG_PATH_BYTES];
    struct error undone;
    int result = command_log_open(
        &run->log, run_folder_path(&run->outcome->folder, "commands.log", path), err);
    if (result == 0)
        result = supervisor_open(&run->supervisor, err);
    if (result < 0)
        goto out;
    result = run_phases(run, err);
    progress_end(run->progress);
    if (result < 0)
        command_log_write(&run->log, "run", "failed: %s", err->text);
    int ended = tear_down(run, &undone);
    if (ended < 0 && result == 0) {
        *err = undone;
        result = ended;
    }
    supervisor_close(&run->supervisor);
out:
    command_log_close(&run->log);
    return result;
}

int run_experiment(const struct experiment *experiment, const struct run_settings *settings,
                   struct run_outcome *outcome, struct error *err)
{
    struct run *run = calloc(1, sizeof *run);
    *outcome = (struct run_outcome){.warnings = json_array()};
    if (!run || !outcome->warnings) {
        free(run);
        return error_set(err, ERROR_FAILED, "out of memory");
    }
    run->experiment = experiment;
    run->tuned = json_array();
    run->outcome = outcome;
    run->progress = settings->progress;
    run->supervisor.signals = -1;
    run->capture = run->load = run->clock = (struct process){.input = -1, .output = -1};
    for (size_t i = 0; i < EXPERIMENT_SERVERS_MAX; i++)
        run->servers[i].process = run->load;
    int result = run_make_neighbours(run, err);
    if (result == 0)
        result = check_programs(experiment, err);
    if (result == 0 && settings->dry) {
        snprintf(outcome->folder.path, sizeof outcome->folder.path, "%.4000s",
                 settings->folder ? settings->folder : "RUN");
        result = run_dry(run, settings->dry, err);
    } else if (result == 0) {
        result = run_folder_make(&outcome->folder, settings->folder, experiment, err);
        if (result == 0)
            result = run_in_folder(run, err);
    }
    free(run->neighbours);
    json_decref(run->tuned);
    json_decref(run->neighbour_loads);
    json_decref(run->server_cpu);
    free(run);
    return result;
}

void run_outcome_free(struct run_outcome *outcome)
{
    json_decref(outcome->warnings);
    outcome->warnings = NULL;
}
