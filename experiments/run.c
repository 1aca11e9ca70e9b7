// SPDX-License-Identifier: MIT
#include "experiments/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "experiments/command_log.h"
#include "experiments/host.h"
#include "experiments/program_path.h"
#include "experiments/server.h"
#include "experiments/supervisor.h"

#define SECOND_NS 1000000000ull

enum {
    PREPARE_TIMEOUT_S = 120,
    ARM_TIMEOUT_S = 30,
    BEGIN_TIMEOUT_S = 60,
    LOAD_GRACE_S = 60,    // after schedule and timeout: writing its logs
    CAPTURE_GRACE_S = 60, // for writing its logs
    STOP_GRACE_MS = 2000,
    LOG_PATH_BYTES = RUN_PATH_BYTES + 128,
};

// A program that runs beside the server for part of the load.
struct neighbour {
    const struct experiment_neighbour *plan;
    struct process process;
    char log_path[LOG_PATH_BYTES];
    bool started;
};

struct run {
    const struct experiment *experiment;
    struct run_outcome *outcome;
    struct progress *progress;
    struct supervisor supervisor;
    struct command_log log;
    struct host_array hosts;
    struct server server;
    char server_name[100];
    struct process capture;
    char capture_log[LOG_PATH_BYTES];
    struct process load;
    char load_log[LOG_PATH_BYTES];
    struct neighbour *neighbours;
    char self[RUN_PATH_BYTES];
    char shim[RUN_PATH_BYTES];
    char shim_dir[128]; // empty: no shim
    bool capturing;
};

static struct host *server_host(struct run *run)
{
    return &run->hosts.items[run->experiment->servers.items[0].host];
}

static struct host *load_host(struct run *run)
{
    return &run->hosts.items[run->experiment->load.from];
}

__attribute__((format(printf, 2, 3))) static void warn(struct run *run, const char *format, ...)
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

// Starts a taillight command on a host, away from the server's cores.
static int start_command(struct run *run, struct host *host, const char *const *argv, bool input,
                         const char *log_path, struct process *process, struct error *err)
{
    char described[2000];
    struct process_place place = host_place(host, &load_host(run)->plan->cores);
    place.log_path = log_path;
    place.pipe_input = input;
    place.pipe_output = true;
    int result = process_start(process, argv, &place, err);
    command_log_write(&run->log, host->plan->name, "%s%s",
                      process_describe(argv, described, sizeof described),
                      result < 0 ? ": failed" : "");
    return result;
}

// --- before anything is started
// ---------------------------------------------------------------------

static int check_programs(const struct experiment *experiment, struct error *err)
{
    const struct experiment_server *server = &experiment->servers.items[0];
    if (experiment->hosts.items[0].kind == HOST_KIND_NETNS && !program_exists("ip"))
        return error_set(err, ERROR_FAILED,
                         "there is no command `ip`; install it: apt-get install "
                         "iproute2");
    if (server->kind == SERVER_KIND_MEMCACHED && !program_exists("memcached"))
        return error_set(err, ERROR_FAILED,
                         "there is no command `memcached` to start the server "
                         "`%s`; install it: apt-get install memcached",
                         server->name);
    if (server->kind == SERVER_KIND_COMMAND && !program_exists(server->command.items[0]))
        return error_set(err, ERROR_FAILED, "the server `%s`: there is no command `%s`",
                         server->name, server->command.items[0]);
    for (size_t i = 0; i < experiment->neighbours.count; i++) {
        const struct experiment_neighbour *neighbour = &experiment->neighbours.items[i];
        if (!program_exists(neighbour->command.items[0]))
            return error_set(err, ERROR_FAILED, "the neighbour `%s`: there is no command `%s`",
                             neighbour->name, neighbour->command.items[0]);
    }
    return 0;
}

static int write_experiment(struct run *run, struct error *err)
{
    json_t *document = experiment_to_json(run->experiment);
    if (!document)
        return error_set(err, ERROR_FAILED, "out of memory");
    json_object_set(document, "warnings", run->outcome->warnings);
    for (size_t i = 0; i < run->hosts.count; i++) {
        json_t *host =
            json_object_get(json_object_get(document, "hosts"), run->hosts.items[i].plan->name);
        json_object_set_new(host, "kind", json_string(host_kind_name(run->hosts.items[i].kind)));
        json_object_set_new(host, "address", json_string(run->hosts.items[i].address));
    }
    int result = run_folder_write_json(&run->outcome->folder, "experiment.json", document, err);
    json_decref(document);
    return result;
}

// --- phases, in their order
// --------------------------------------------------------------------------

static int start_hosts(struct run *run, struct error *err)
{
    struct error degraded;
    progress_phase(run->progress, "making %zu host%s", run->experiment->hosts.count,
                   run->experiment->hosts.count == 1 ? "" : "s");
    int result = hosts_start(&run->hosts, run->experiment, &run->log, &degraded, err);
    if (result == 0 && degraded.kind != ERROR_NONE)
        warn(run, "%s; hosts are this machine instead, over 127.0.0.1, and share its network",
             degraded.text);
    return result;
}

// Rings of the shim live in shared memory; the server's keeper removes them however the run ends.
static int make_shim_directory(struct run *run, struct error *err)
{
    if (!run->experiment->servers.items[0].shim)
        return 0;
    int result = program_path_shim(run->shim, sizeof run->shim, err);
    if (result < 0)
        return result;
    snprintf(run->shim_dir, sizeof run->shim_dir, "/dev/shm/taillight-%d-%llx", getpid(),
             (unsigned long long)supervisor_now_ns());
    result = keeper_make_directory(&server_host(run)->keeper, run->shim_dir, err);
    if (result < 0)
        run->shim_dir[0] = '\0';
    return result;
}

static int start_server(struct run *run, struct error *err)
{
    char path[LOG_PATH_BYTES], name[100];
    const struct experiment_server *plan = &run->experiment->servers.items[0];
    progress_phase(run->progress, "starting the server `%s`", plan->name);
    snprintf(name, sizeof name, "logs/server-%s.log", plan->name);
    run_folder_path(&run->outcome->folder, name, path);
    int result = make_shim_directory(run, err);
    if (result == 0)
        result = server_start(&run->server, plan, server_host(run), load_host(run),
                              run->shim_dir[0] ? run->shim : NULL,
                              run->shim_dir[0] ? run->shim_dir : NULL, path, &run->log, err);
    if (result < 0)
        return result;
    snprintf(run->server_name, sizeof run->server_name, "the server `%s`", plan->name);
    supervisor_watch(&run->supervisor, &run->server.process, run->server_name,
                     run->server.log_path);
    return 0;
}

struct load_words {
    char server[64], workload[LOG_PATH_BYTES], samples[LOG_PATH_BYTES];
    char rate[40], connections[24], depth[24], duration[32], seed[24], timeout[32];
};

static void fill_load_words(struct run *run, struct load_words *words)
{
    const struct experiment_load *load = &run->experiment->load;
    snprintf(words->server, sizeof words->server, "%s:%u", server_host(run)->address,
             run->experiment->servers.items[load->to].port);
    run_folder_path(&run->outcome->folder, "client/workload.yaml", words->workload);
    run_folder_path(&run->outcome->folder, "client", words->samples);
    snprintf(words->rate, sizeof words->rate, "%.17g", load->rate);
    snprintf(words->connections, sizeof words->connections, "%llu",
             (unsigned long long)load->connections);
    snprintf(words->depth, sizeof words->depth, "%llu", (unsigned long long)load->depth);
    snprintf(words->duration, sizeof words->duration, "%lluns",
             (unsigned long long)load->duration_ns);
    snprintf(words->seed, sizeof words->seed, "%llu", (unsigned long long)load->seed);
    snprintf(words->timeout, sizeof words->timeout, "%lluns", (unsigned long long)load->timeout_ns);
}

static int prepare(struct run *run, struct error *err)
{
    int status;
    struct load_words words;
    struct process process;
    fill_load_words(run, &words);
    const char *const argv[] = {run->self,    "load",         "--prepare", "--server", words.server,
                                "--workload", words.workload, "--quiet",   NULL};
    progress_phase(run->progress, "loading and verifying %llu keys",
                   (unsigned long long)run->experiment->workload.key_count);
    char path[LOG_PATH_BYTES];
    run_folder_path(&run->outcome->folder, "logs/prepare.log", path);
    int result = start_command(run, load_host(run), argv, false, path, &process, err);
    if (result < 0)
        return result;
    result = supervisor_wait(&run->supervisor, &process, NULL, false,
                             supervisor_now_ns() + PREPARE_TIMEOUT_S * SECOND_NS, &status, err);
    if (result == 0)
        result = error_set(err, ERROR_FAILED, "the dataset is not loaded after %d s; see %s",
                           PREPARE_TIMEOUT_S, path);
    else if (result > 0 && status != 0)
        result = supervisor_end_error(err, "loading the dataset", status, path);
    process_stop(&process, 0);
    return result < 0 ? result : 0;
}

// A line of JSON that a child prints when it has come so far.
static json_t *first_line_json(const struct text_buffer *output)
{
    const char *end = output->count ? memchr(output->items, '\n', output->count) : NULL;
    return end ? json_loadb(output->items, (size_t)(end - output->items), 0, NULL) : NULL;
}

static int wait_armed(struct run *run, struct error *err)
{
    struct text_buffer output = {0};
    int status = 0;
    int result = supervisor_wait(&run->supervisor, &run->capture, &output, true,
                                 supervisor_now_ns() + ARM_TIMEOUT_S * SECOND_NS, &status, err);
    json_t *line = first_line_json(&output);
    if (result >= 0 && json_is_true(json_object_get(line, "ready"))) {
        size_t i;
        json_t *text;
        json_array_foreach(json_object_get(line, "warnings"), i, text)
            warn(run, "capture: %s", json_string_value(text));
        result = 0;
    } else if (result > 0 && !run->capture.pid) {
        result = supervisor_end_error(err, "the capture", status, run->capture_log);
    } else if (result >= 0) {
        result = error_set(err, ERROR_FAILED, "the capture is not ready after %d s; see %s",
                           ARM_TIMEOUT_S, run->capture_log);
    }
    json_decref(line);
    array_free(&output);
    return result;
}

static int start_capture(struct run *run, struct error *err)
{
    const struct experiment_server *server = &run->experiment->servers.items[0];
    char out[LOG_PATH_BYTES], port[8], cores[256], helpers[256], buffer[32];
    const char *argv[24];
    size_t n = 0;
    bool events = run->experiment->backend != CAPTURE_BACKEND_NONE;
    if (!events && !run->shim_dir[0])
        return 0;
    progress_phase(run->progress, "arming the capture");
    run_folder_path(&run->outcome->folder, "server", out);
    run_folder_path(&run->outcome->folder, "logs/capture.log", run->capture_log);
    snprintf(port, sizeof port, "%u", server->port);
    const char *const fixed[] = {
        run->self,        "capture",
        "--out",          out,
        "--port",         port,
        "--cores",        units_format_cores(&server_host(run)->plan->cores, cores, sizeof cores),
        "--helper-cores", units_format_cores(&load_host(run)->plan->cores, helpers, sizeof helpers),
        "--quiet"};
    for (; n < sizeof fixed / sizeof *fixed; n++)
        argv[n] = fixed[n];
    if (!events)
        argv[n++] = "--no-events";
    else if (run->experiment->backend == CAPTURE_BACKEND_EVENTS)
        argv[n++] = "--need-events";
    if (run->shim_dir[0]) {
        argv[n++] = "--shim";
        argv[n++] = run->shim_dir;
    }
    if (run->experiment->buffer_bytes) {
        snprintf(buffer, sizeof buffer, "%llu", (unsigned long long)run->experiment->buffer_bytes);
        argv[n++] = "--buffer";
        argv[n++] = buffer;
    }
    argv[n] = NULL;
    int result =
        start_command(run, server_host(run), argv, true, run->capture_log, &run->capture, err);
    if (result == 0)
        result = wait_armed(run, err);
    if (result < 0)
        return result;
    run->capturing = true;
    supervisor_watch(&run->supervisor, &run->capture, "the capture", run->capture_log);
    return 0;
}

// --- the load and its neighbours
// ---------------------------------------------------------------------

static int start_load(struct run *run, struct error *err)
{
    struct load_words words;
    fill_load_words(run, &words);
    const char *const argv[] = {run->self,       "load",
                                "--server",      words.server,
                                "--workload",    words.workload,
                                "--rate",        words.rate,
                                "--arrivals",    run->experiment->load.arrivals,
                                "--connections", words.connections,
                                "--depth",       words.depth,
                                "--duration",    words.duration,
                                "--seed",        words.seed,
                                "--stamps",      run->experiment->load.stamps,
                                "--timeout",     words.timeout,
                                "--samples",     words.samples,
                                "--announce",    "--json",
                                "--quiet",       NULL};
    run_folder_path(&run->outcome->folder, "logs/load.log", run->load_log);
    return start_command(run, load_host(run), argv, false, run->load_log, &run->load, err);
}

static int load_end_error(struct run *run, int status, struct error *err)
{
    return supervisor_end_error(err, "the load generator", status, run->load_log);
}

// The load says when its first request is due: everything else is timed from there.
static int wait_begin(struct run *run, struct text_buffer *output, uint64_t *begin_ns,
                      struct error *err)
{
    int status = 0;
    int result = supervisor_wait(&run->supervisor, &run->load, output, true,
                                 supervisor_now_ns() + BEGIN_TIMEOUT_S * SECOND_NS, &status, err);
    if (result < 0)
        return result;
    json_t *line = first_line_json(output), *begin = json_object_get(line, "begin_ns");
    if (json_is_integer(begin))
        *begin_ns = (uint64_t)json_integer_value(begin);
    else if (!run->load.pid)
        result = load_end_error(run, status, err);
    else
        result = error_set(err, ERROR_FAILED, "the load does not begin; see %s", run->load_log);
    json_decref(line);
    return result < 0 ? result : 0;
}

static int start_neighbour(struct run *run, struct neighbour *neighbour, struct error *err)
{
    char name[100], described[1000];
    struct host *host = &run->hosts.items[neighbour->plan->host];
    struct process_place place = host_place(host, &neighbour->plan->cores);
    snprintf(name, sizeof name, "logs/neighbour-%s.log", neighbour->plan->name);
    run_folder_path(&run->outcome->folder, name, neighbour->log_path);
    place.log_path = neighbour->log_path;
    place.discard_output = true;
    neighbour->started = true;
    int result = process_start(&neighbour->process, neighbour->plan->command.items, &place, err);
    command_log_write(&run->log, host->plan->name, "%s%s",
                      process_describe(neighbour->plan->command.items, described, sizeof described),
                      result < 0 ? ": failed" : "");
    return result;
}

static void end_neighbour(struct run *run, struct neighbour *neighbour)
{
    if (neighbour->process.pid <= 0)
        return;
    process_stop(&neighbour->process, STOP_GRACE_MS);
    command_log_write(&run->log, neighbour->plan->name, "stopped");
}

// Does what is due by now and returns when something is due next (UINT64_MAX: nothing).
static int tend_neighbours(struct run *run, uint64_t begin_ns, uint64_t now_ns, uint64_t *next_ns,
                           struct error *err)
{
    *next_ns = UINT64_MAX;
    for (size_t i = 0; i < run->experiment->neighbours.count; i++) {
        struct neighbour *neighbour = &run->neighbours[i];
        uint64_t start_ns = begin_ns + neighbour->plan->start_ns;
        uint64_t stop_ns =
            neighbour->plan->stop_ns ? begin_ns + neighbour->plan->stop_ns : UINT64_MAX;
        if (!neighbour->started && now_ns >= start_ns && start_neighbour(run, neighbour, err) < 0)
            return error_prefix(err, "the neighbour `%s`", neighbour->plan->name);
        if (neighbour->started && now_ns >= stop_ns)
            end_neighbour(run, neighbour);
        uint64_t due_ns = !neighbour->started          ? start_ns
                          : neighbour->process.pid > 0 ? stop_ns
                                                       : UINT64_MAX;
        *next_ns = due_ns < *next_ns ? due_ns : *next_ns;
    }
    return 0;
}

// A neighbour may well end by itself; that it failed is worth saying.
static void check_neighbours(struct run *run)
{
    for (size_t i = 0; i < run->experiment->neighbours.count; i++) {
        struct neighbour *neighbour = &run->neighbours[i];
        struct error err;
        int status;
        if (neighbour->process.pid <= 0 ||
            process_wait(&neighbour->process, 0, &status, &err) <= 0 || status == 0)
            continue;
        char what[100];
        snprintf(what, sizeof what, "the neighbour `%s`", neighbour->plan->name);
        supervisor_end_error(&err, what, status, neighbour->log_path);
        warn(run, "%s", err.text);
    }
}

// Waits for the load's end while the neighbours come and go.
static int follow_load(struct run *run, uint64_t begin_ns, struct text_buffer *output, int *status,
                       struct error *err)
{
    const struct experiment_load *load = &run->experiment->load;
    uint64_t end_ns = begin_ns + load->duration_ns;
    uint64_t deadline_ns = end_ns + load->timeout_ns + LOAD_GRACE_S * SECOND_NS;
    for (;;) {
        uint64_t now_ns = supervisor_now_ns(), next_ns;
        if (now_ns >= deadline_ns)
            return error_set(err, ERROR_FAILED, "the load does not end; see %s", run->load_log);
        int result = tend_neighbours(run, begin_ns, now_ns, &next_ns, err);
        if (result < 0)
            return result;
        check_neighbours(run);
        if (now_ns < end_ns)
            progress_update(run->progress, ": %.0f s to go", (double)(end_ns - now_ns) / SECOND_NS);
        uint64_t wake_ns = now_ns + SECOND_NS;
        result = supervisor_wait(&run->supervisor, &run->load, output, false,
                                 next_ns < wake_ns ? next_ns : wake_ns, status, err);
        if (result)
            return result < 0 ? result : 0;
    }
}

static int keep_load_summary(struct run *run, const struct text_buffer *output, struct error *err)
{
    const char *second = memchr(output->items, '\n', output->count);
    json_error_t where;
    json_t *document = second ? json_loads(second + 1, 0, &where) : NULL;
    if (!document)
        return error_set(err, ERROR_FAILED, "the load's summary cannot be read: %s; see %s",
                         second ? where.text : "there is none", run->load_log);
    int result = run_folder_write_json(&run->outcome->folder, "client/load.json", document, err);
    json_decref(document);
    return result;
}

static int load_server(struct run *run, struct error *err)
{
    const struct experiment_load *load = &run->experiment->load;
    struct text_buffer output = {0};
    char duration[40], last[400];
    uint64_t begin_ns = 0;
    int status = 0;
    progress_phase(run->progress, "loading %s at %.10g requests/s",
                   units_format_ns((double)load->duration_ns, duration, sizeof duration),
                   load->rate);
    int result = start_load(run, err);
    if (result == 0)
        result = wait_begin(run, &output, &begin_ns, err);
    if (result == 0)
        result = follow_load(run, begin_ns, &output, &status, err);
    for (size_t i = 0; i < run->experiment->neighbours.count; i++)
        end_neighbour(run, &run->neighbours[i]);
    if (result == 0 && WIFEXITED(status) && WEXITSTATUS(status) == ERROR_INCONCLUSIVE)
        warn(run, "load: %s", command_log_last_line(run->load_log, last, sizeof last));
    else if (result == 0 && status != 0)
        result = load_end_error(run, status, err);
    if (result == 0)
        result = keep_load_summary(run, &output, err);
    array_free(&output);
    return result;
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

// --- the whole
// -----------------------------------------------------------------------------------------

static int run_phases(struct run *run, struct error *err)
{
    int (*const phases[])(struct run *, struct error *) = {
        start_hosts,   write_experiment, start_server, prepare,
        start_capture, load_server,      stop_capture, write_experiment};
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
    for (size_t i = 0; i < run->experiment->neighbours.count; i++)
        end_neighbour(run, &run->neighbours[i]);
    process_stop(&run->load, STOP_GRACE_MS);
    process_stop(&run->capture, STOP_GRACE_MS);
    server_stop(&run->server);
    return hosts_end(&run->hosts, &run->log, err);
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
    run->outcome = outcome;
    run->progress = settings->progress;
    run->supervisor.signals = -1;
    run->capture = run->load = run->server.process = (struct process){.input = -1, .output = -1};
    run->neighbours = calloc(experiment->neighbours.count + 1, sizeof *run->neighbours);
    int result = run->neighbours ? 0 : error_set(err, ERROR_FAILED, "out of memory");
    for (size_t i = 0; result == 0 && i < experiment->neighbours.count; i++)
        run->neighbours[i] = (struct neighbour){.plan = &experiment->neighbours.items[i],
                                                .process = {.input = -1, .output = -1}};
    if (result == 0)
        result = program_path_self(run->self, sizeof run->self, err);
    if (result == 0)
        result = check_programs(experiment, err);
    if (result == 0)
        result = run_folder_make(&outcome->folder, settings->folder, experiment, err);
    if (result == 0)
        result = run_in_folder(run, err);
    free(run->neighbours);
    free(run);
    return result;
}

void run_outcome_free(struct run_outcome *outcome)
{
    json_decref(outcome->warnings);
    outcome->warnings = NULL;
}
