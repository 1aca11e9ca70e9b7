// SPDX-License-Identifier: MIT
#include "experiments/servers/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/hosts/host_kind.h"
#include "experiments/servers/server_kind.h"

enum { CONFIGURING_TIMEOUT_S = 10, READY_POLL_MS = 10, STOP_GRACE_MS = 2000 };
#define NEIGHBOUR_READY_NS 10000000000ull

const char *server_address(const struct experiment_server *plan, const struct host *host)
{
    return plan->address ? plan->address : host->address;
}

static int wait_ready(struct server *server, const struct server_surroundings *around,
                      struct error *err)
{
    const struct host *host = around->host;
    const uint64_t own_ns = server->plan->ready_within_ns;
    const uint64_t within_ns = own_ns ? own_ns : NEIGHBOUR_READY_NS;
    uint64_t deadline_ns = supervisor_now_ns() + within_ns;
    while (supervisor_now_ns() < deadline_ns) {
        // The wait fails when the server ends or the user interrupts.
        int result = supervisor_wait(around->supervisor, NULL, NULL, false,
                                     supervisor_now_ns() + READY_POLL_MS * 1000000ull, NULL, err);
        if (result == 0)
            result = keeper_probe(&around->from->keeper, server_address(server->plan, host),
                                  server->plan->port, err);
        if (result)
            return result < 0 ? result : 0;
    }
    return error_set(err, ERROR_FAILED,
                     "the server `%s` does not listen on %s:%u after %g s; see %s%s",
                     server->plan->name, server_address(server->plan, host), server->plan->port,
                     (double)within_ns / 1e9, server->log_path,
                     own_ns ? ", or give it longer (`ready_within`)" : "");
}

static int check_port_free(const struct experiment_server *plan, struct host *host,
                           struct error *err)
{
    int taken = keeper_probe(&host->keeper, host->address, plan->port, err);
    if (taken <= 0)
        return taken;
    return error_set(err, ERROR_FAILED,
                     "port %u for the server `%s` is taken: somebody listens on %s:%u already; "
                     "give the server another `port`, or a host of kind netns",
                     plan->port, plan->name, host->address, plan->port);
}

// Sends a folder to a host on another machine; `path` becomes its path there.
static int send_folder(const struct server_surroundings *around, const char *name,
                       char path[RUN_PATH_BYTES + 128], struct error *err)
{
    char here[RUN_PATH_BYTES + 128];
    struct process process;
    struct host *host = around->host;
    memcpy(here, path, sizeof here);
    snprintf(path, RUN_PATH_BYTES, "%s/%s", host->directory, name);
    int result = keeper_make_directory(&host->keeper, path, err);
    if (host->keeper.dry)
        return 0;
    if (result == 0)
        result = host->kind->start_copy(host, false, path, here, FAR_PART_ALL, &process, err);
    if (result < 0)
        return result;
    result = supervisor_finish(around->supervisor, &process, "sending a configuration",
                               host->log_path, CONFIGURING_TIMEOUT_S, err);
    process_stop(&process, 0);
    return result;
}

// Makes the files that its kind needs, on its host; `path` becomes their folder's path there.
static int configure_server(const struct experiment_server *plan,
                            const struct server_surroundings *around,
                            char path[RUN_PATH_BYTES + 128], struct error *err)
{
    char name[EXPERIMENT_PART_NAME_BYTES + 16];
    struct host *host = around->host;
    snprintf(name, sizeof name, "%s-%s", plan->kind->name, plan->name);
    run_folder_path(around->folder, name, path);
    int result = plan->kind->configure(plan, host, around->folder, name, !host->keeper.dry, err);
    return result > 0 && host->kind->is_elsewhere ? send_folder(around, name, path, err) : result;
}

static int start_process(struct server *server, const struct server_surroundings *around,
                         struct error *err)
{
    char preload[4300], directory[4300], described[1000], files[RUN_PATH_BYTES + 128];
    const struct experiment_server *plan = server->plan;
    struct command_line line = {.failed = false};
    const char *shim = around->shim_path;
    const char *already = around->host->kind->is_elsewhere ? NULL : getenv("LD_PRELOAD");
    const char *const environment[] = {preload, directory, NULL};
    struct process_place place = host_place(around->host, &plan->cores);
    place.log_path = server->log_path;
    place.nice = plan->nice;
    place.has_children = plan->kind->has_children;
    if (shim) {
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s%s%s", shim, already && *already ? ":" : "",
                 already ? already : "");
        snprintf(directory, sizeof directory, "TAILLIGHT_SHIM_DIR=%s", around->shim_dir);
        place.environment = environment;
    }
    int result = configure_server(plan, around, files, err);
    if (result < 0)
        return result;
    result = plan->kind->make_command(&line, plan, around->host, files, err);
    if (result == 0) {
        result = around->host->kind->start_process(around->host, line.words.items, &place,
                                                   &server->process, err);
        command_log_write(around->log, plan->name, "%s%s%s%s%s%s", shim ? directory : "",
                          shim ? " " : "", shim ? preload : "", shim ? " " : "",
                          process_describe(line.words.items, described, sizeof described),
                          result < 0 ? ": failed" : "");
    }
    command_line_free(&line);
    return result;
}

// A server that runs already has to answer.
static int find_running(const struct server *server, const struct server_surroundings *around,
                        struct error *err)
{
    const struct experiment_server *plan = server->plan;
    const char *address = server_address(plan, around->host);
    int answers = keeper_probe(&around->from->keeper, address, plan->port, err);
    command_log_write(around->log, plan->name, "runs already, on %s:%u", address, plan->port);
    return answers > 0   ? 0
           : answers < 0 ? answers
                         : error_set(err, ERROR_FAILED,
                                     "the server `%s`, which is to run already, does not listen on "
                                     "%s:%u; if it is in a container, give the container's "
                                     "`address`",
                                     plan->name, address, plan->port);
}

int server_start(struct server *server, const struct experiment_server *plan,
                 const struct server_surroundings *around, struct error *err)
{
    *server = (struct server){.plan = plan, .process = {.input = -1, .output = -1}};
    snprintf(server->what, sizeof server->what, "the server `%s`", plan->name);
    snprintf(server->log_path, sizeof server->log_path, "%s", around->log_path);
    if (plan->kind->runs_already)
        return around->log->dry ? 0 : find_running(server, around, err);
    int result = check_port_free(plan, around->host, err);
    if (result == 0)
        result = start_process(server, around, err);
    if (result < 0 || around->log->dry)
        return result;
    supervisor_watch(around->supervisor, &server->process, server->what, server->log_path);
    result = wait_ready(server, around, err);
    if (result < 0)
        server_stop(server, around->supervisor);
    return result;
}

void server_stop(struct server *server, struct supervisor *supervisor)
{
    if (!server->plan || server->plan->kind->runs_already)
        return;
    supervisor_unwatch(supervisor, &server->process);
    // A person who interrupts waits for all that ends after this, too.
    process_stop(&server->process, supervisor->interrupted ? INTERRUPT_GRACE_MS : STOP_GRACE_MS);
}
