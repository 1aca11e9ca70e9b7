// SPDX-License-Identifier: MIT
//
// The neighbours: what runs beside the server. A program is started and stopped at its times. A
// neighbour that serves (NGINX) is up before the server is loaded and until everything ends; only
// its load is started and stopped, a load generator of its own that sleeps between requests, since
// it may share a core with the one that measures.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/hosts/host_kind.h"
#include "experiments/run/run_phases.h"
#include "experiments/servers/server_kind.h"

enum { LOAD_GRACE_MS = 2000 }; // for a neighbour's load to end by itself, and again after SIGTERM

int run_make_neighbours(struct run *run, struct error *err)
{
    size_t count = run->experiment->neighbours.count;
    run->neighbours = calloc(count + 1, sizeof *run->neighbours);
    run->neighbour_loads = json_array();
    if (!run->neighbours || !run->neighbour_loads)
        return error_set(err, ERROR_FAILED, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const struct experiment_neighbour *plan = &run->experiment->neighbours.items[i];
        struct neighbour *neighbour = &run->neighbours[i];
        *neighbour = (struct neighbour){.plan = plan,
                                        .process = {.input = -1, .output = -1},
                                        .server_plan = {.host = plan->host,
                                                        .kind = plan->kind->server,
                                                        .threads = plan->workers,
                                                        .page_bytes = plan->page_bytes,
                                                        .rules = plan->rules,
                                                        .nice = plan->nice,
                                                        .port = plan->port,
                                                        .cores = plan->cores},
                                        .server.process = {.input = -1, .output = -1}};
        memcpy(neighbour->server_plan.name, plan->name, sizeof plan->name);
    }
    return 0;
}

static char *file_of(const struct run *run, const struct neighbour *neighbour, const char *format,
                     char path[LOG_PATH_BYTES])
{
    char name[120];
    snprintf(name, sizeof name, format, neighbour->plan->name);
    return run_folder_path(run->folder, name, path);
}

static int start_serving(struct run *run, struct neighbour *neighbour, struct error *err)
{
    char path[LOG_PATH_BYTES];
    const struct experiment_neighbour *plan = neighbour->plan;
    struct host *from =
        plan->load.rate > 0 ? &run->hosts.items[plan->load.from] : run_load_host(run);
    progress_phase(run->progress, "starting the neighbour `%s`", plan->name);
    const struct server_surroundings around = {
        .host = &run->hosts.items[plan->host],
        .from = from,
        .log_path = file_of(run, neighbour, "logs/neighbour-%s.log", path),
        .folder = run->folder,
        .supervisor = &run->supervisor,
        .log = &run->log};
    return server_start(&neighbour->server, &neighbour->server_plan, &around, err);
}

// --- starting them -------------------------------------------------------------------------------

// Starts a shell on a host behind ssh that waits for a line on stdin and then becomes the program.
// To set up a session of ssh only then would be too late, and cost time on the server's core.
static int start_held(const struct host *host, const char *const *argv, struct process_place place,
                      struct process *process, struct error *err)
{
    static const char *const shell[] = {"sh", "-c", "read -r go && exec \"$@\"", "sh", NULL};
    struct command_line line = {.failed = false};
    command_line_add_list(&line, shell);
    command_line_add_list(&line, argv);
    place.pipe_input = true;
    int result = command_line_result(&line, err);
    if (result == 0)
        result = host->kind->start_process(host, line.words.items, &place, process, err);
    command_line_free(&line);
    return result;
}

static int release_held(struct neighbour *neighbour, struct error *err)
{
    // If the shell is gone, run_check_neighbours reports why.
    if (write(neighbour->process.input, "\n", 1) < 0 && errno != EPIPE)
        return error_set_errno(err, ERROR_FAILED, "cannot be released to begin");
    close(neighbour->process.input);
    neighbour->process.input = -1;
    return 0;
}

static int start_or_hold(struct run *run, struct neighbour *neighbour, const struct host *host,
                         const char *const *argv, const struct process_place *place,
                         struct error *err)
{
    char described[1000];
    int result = neighbour->held
                     ? start_held(host, argv, *place, &neighbour->process, err)
                     : host->kind->start_process(host, argv, place, &neighbour->process, err);
    command_log_write(&run->log, host->plan->name, "%s%s%s", neighbour->held ? "ready to: " : "",
                      process_describe(argv, described, sizeof described),
                      result < 0 ? ": failed" : "");
    return result;
}

static int start_program(struct run *run, struct neighbour *neighbour, struct error *err)
{
    const struct experiment_neighbour *plan = neighbour->plan;
    struct host *host = &run->hosts.items[plan->host];
    struct process_place place = host_place(host, &plan->cores);
    file_of(run, neighbour, "logs/neighbour-%s.log", neighbour->log_path);
    place.log_path = neighbour->log_path;
    place.discard_output = true;
    place.has_children = true; // often a shell: what it started ends with it
    place.nice = plan->nice;
    return start_or_hold(run, neighbour, host, plan->command.items, &place, err);
}

static int start_load(struct run *run, struct neighbour *neighbour, struct error *err)
{
    char program[RUN_PATH_BYTES];
    struct command_line line = {.failed = false};
    const struct experiment_neighbour *plan = neighbour->plan;
    struct host *from = &run->hosts.items[plan->load.from];
    struct process_place place = host_place(from, &plan->load.cores);
    uint64_t stop_ns = plan->stop_ns ? plan->stop_ns : run->experiment->load.duration_ns;
    int result = from->kind->find_program(from, "taillight", program, err);
    if (result < 0)
        return result;
    command_line_add_list(&line, (const char *const[]){program, "load", NULL});
    command_line_add_option(&line, "--server", "%s:%u", run->hosts.items[plan->host].address,
                            plan->port);
    command_line_add_option(&line, "--protocol", "%s", plan->kind->server->protocol);
    command_line_add_option(&line, "--rate", "%.17g", plan->load.rate);
    command_line_add_number(&line, "--connections", plan->load.connections);
    command_line_add_number(&line, "--depth", plan->load.depth);
    command_line_add_ns(&line, "--duration", stop_ns - plan->start_ns);
    command_line_add_list(&line, (const char *const[]){"--seed", "1", "--stamps", "user", "--sleep",
                                                       "--json", "--quiet", NULL});
    file_of(run, neighbour, "logs/neighbour-%s-load.log", neighbour->log_path);
    place.log_path = neighbour->log_path;
    place.pipe_output = true; // a few kB, which the pipe holds until it has ended
    result = command_line_result(&line, err);
    if (result == 0)
        result = start_or_hold(run, neighbour, from, line.words.items, &place, err);
    command_line_free(&line);
    return result;
}

// Starts what has times: a program, or the load of a neighbour that serves, if it has one.
static int start_visitor(struct run *run, struct neighbour *neighbour, struct error *err)
{
    if (!neighbour->plan->kind->server)
        return start_program(run, neighbour, err);
    return neighbour->plan->load.rate > 0 ? start_load(run, neighbour, err) : 0;
}

int run_start_neighbours(struct run *run, struct error *err)
{
    for (size_t i = 0; i < run->experiment->neighbours.count; i++) {
        struct neighbour *neighbour = &run->neighbours[i];
        const struct experiment_neighbour *plan = neighbour->plan;
        bool serves = plan->kind->server;
        const struct host *host = &run->hosts.items[serves ? plan->load.from : plan->host];
        int result = serves ? start_serving(run, neighbour, err) : 0;
        neighbour->held = host->kind->is_elsewhere;
        if (result == 0 && neighbour->held)
            result = start_visitor(run, neighbour, err);
        if (result < 0)
            return error_prefix(err, "the neighbour `%s`", plan->name);
    }
    return 0;
}

static int start_due(struct run *run, struct neighbour *neighbour, struct error *err)
{
    neighbour->started = true;
    bool visits = !neighbour->plan->kind->server || neighbour->plan->load.rate > 0;
    if (neighbour->held && (!visits || (neighbour->process.pid <= 0 && !run->log.dry)))
        return 0; // it has no load, or its shell is gone
    if (neighbour->held)
        command_log_write(&run->log, neighbour->plan->name, "released to begin");
    int result = neighbour->held && run->log.dry ? 0
                 : neighbour->held               ? release_held(neighbour, err)
                                                 : start_visitor(run, neighbour, err);
    return result < 0 ? error_prefix(err, "the neighbour `%s`", neighbour->plan->name) : 0;
}

// --- ending them ---------------------------------------------------------------------------------

static void keep_summary(struct run *run, const struct neighbour *neighbour,
                         const struct text_buffer *output)
{
    char name[120];
    struct error err;
    const json_t *latency;
    json_t *document = output->count ? json_loads(output->items, 0, NULL) : NULL;
    snprintf(name, sizeof name, "%s-%s/load.json", neighbour->plan->kind->name,
             neighbour->plan->name);
    if (!document) {
        run_warn(run, "the neighbour `%s`: its load left no summary; see %s", neighbour->plan->name,
                 neighbour->log_path);
        return;
    }
    if (run_folder_write_json(run->folder, name, document, &err) < 0)
        run_warn(run, "%s", err.text);
    latency = json_object_get(document, "latency_us");
    json_array_append_new(
        run->neighbour_loads,
        json_pack("{s:s, s:s, s:f, s:O?, s:O?, s:O?}", "name", neighbour->plan->name, "file", name,
                  "rate", neighbour->plan->load.rate, "achieved_rate",
                  json_object_get(document, "achieved_rate"), "p50_us",
                  json_object_get(latency, "p50"), "p99_us", json_object_get(latency, "p99")));
    json_decref(document);
}

// Waits for the end of a neighbour's load, which began a little late and so ends a little late, and
// keeps its summary.
static void end_load(struct run *run, struct neighbour *neighbour)
{
    struct text_buffer output = {0};
    struct error err;
    int status = 0, ended = 0;
    for (int attempt = 0; attempt < 2 && ended == 0; attempt++) {
        uint64_t deadline_ns = supervisor_now_ns() + LOAD_GRACE_MS * 1000000ull;
        ended = supervisor_wait(&run->supervisor, &neighbour->process, &output, false, deadline_ns,
                                &status, &err);
        if (ended == 0)
            process_ask_to_end(&neighbour->process); // early, with a summary of what there is
    }
    keep_summary(run, neighbour, &output);
    array_free(&output);
}

static void stop_visitor(struct run *run, struct neighbour *neighbour, bool keep)
{
    if (neighbour->process.pid <= 0)
        return;
    if (keep && neighbour->plan->kind->server)
        end_load(run, neighbour);
    process_stop(&neighbour->process, STOP_GRACE_MS);
    command_log_write(&run->log, neighbour->plan->name, "stopped");
}

void run_stop_neighbours(struct run *run, bool keep)
{
    for (size_t i = 0; i < run->experiment->neighbours.count; i++)
        stop_visitor(run, &run->neighbours[i], keep);
}

void run_end_neighbours(struct run *run)
{
    for (size_t i = 0; run->neighbours && i < run->experiment->neighbours.count; i++) {
        stop_visitor(run, &run->neighbours[i], false);
        server_stop(&run->neighbours[i].server, &run->supervisor);
    }
}

int run_update_neighbours(struct run *run, uint64_t begin_ns, uint64_t now_ns, uint64_t *next_ns,
                          struct error *err)
{
    *next_ns = UINT64_MAX;
    for (size_t i = 0; i < run->experiment->neighbours.count; i++) {
        struct neighbour *neighbour = &run->neighbours[i];
        bool is_load = neighbour->plan->kind->server; // ends by itself
        uint64_t start_ns = begin_ns + neighbour->plan->start_ns;
        uint64_t stop_ns =
            neighbour->plan->stop_ns && !is_load ? begin_ns + neighbour->plan->stop_ns : UINT64_MAX;
        if (!neighbour->started && now_ns >= start_ns && start_due(run, neighbour, err) < 0)
            return -ERROR_FAILED;
        if (neighbour->started && now_ns >= stop_ns)
            stop_visitor(run, neighbour, false);
        uint64_t due_ns = !neighbour->started          ? start_ns
                          : neighbour->process.pid > 0 ? stop_ns
                                                       : UINT64_MAX;
        *next_ns = due_ns < *next_ns ? due_ns : *next_ns;
    }
    return 0;
}

void run_check_neighbours(struct run *run)
{
    for (size_t i = 0; i < run->experiment->neighbours.count; i++) {
        struct neighbour *neighbour = &run->neighbours[i];
        struct error err;
        int status;
        if (neighbour->process.pid <= 0 || neighbour->plan->kind->server ||
            process_wait(&neighbour->process, 0, &status, &err) <= 0 || status == 0)
            continue;
        char what[100];
        snprintf(what, sizeof what, "the neighbour `%s`", neighbour->plan->name);
        supervisor_end_error(&err, what, status, neighbour->log_path);
        run_warn(run, "%s", err.text);
    }
}
