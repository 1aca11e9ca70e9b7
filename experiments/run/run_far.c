// SPDX-License-Identifier: MIT
//
// What a run does only when a host is behind ssh: folders there for what is written there, the
// files sent and fetched, each machine's own facts and clock.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "experiments/common/program_path.h"
#include "experiments/run/run_state.h"

enum { COPY_TIMEOUT_S = 600, FACTS_TIMEOUT_S = 60, CLOCK_TIMEOUT_S = 30 };

static bool is_far(const struct host *host)
{
    return host->kind == HOST_KIND_SSH;
}

static bool any_is_far(const struct run *run)
{
    for (size_t i = 0; i < run->hosts.count; i++)
        if (is_far(&run->hosts.items[i]))
            return true;
    return false;
}

void run_watch_links(struct run *run)
{
    for (size_t i = 0; i < run->hosts.count; i++) {
        struct host *host = &run->hosts.items[i];
        if (is_far(host))
            supervisor_watch(&run->supervisor, &host->keeper.link, host->far.what,
                             host->far.log_path);
    }
}

void run_unwatch_links(struct run *run)
{
    for (size_t i = 0; i < run->hosts.count; i++)
        supervisor_unwatch(&run->supervisor, &run->hosts.items[i].keeper.link);
}

// --- facts ---------------------------------------------------------------------------------------

int run_ask_facts(struct run *run, struct host *host, struct process *process, struct error *err)
{
    char program[RUN_PATH_BYTES];
    int result = host_program(host, "taillight", program, err);
    const char *const argv[] = {program, "doctor", "--json", NULL};
    return result == 0
               ? run_start_command(run, host, argv, false, NULL, host->far.log_path, process, err)
               : result;
}

json_t *run_far_facts(struct run *run, struct host *host, struct error *err)
{
    struct process process;
    struct text_buffer output = {0};
    int status = 0;
    int result = run_ask_facts(run, host, &process, err);
    if (result < 0)
        return NULL;
    result = supervisor_wait(&run->supervisor, &process, &output, false,
                             supervisor_now_ns() + FACTS_TIMEOUT_S * SECOND_NS, &status, err);
    json_t *facts = result > 0 ? json_loadb(output.items, output.count, 0, NULL) : NULL;
    if (result > 0 && status != 0)
        supervisor_end_error(err, "the doctor", status, host->far.log_path);
    else if (result >= 0 && !facts)
        error_set(err, ERROR_FAILED, "host %s does not say what it can measure", host->plan->name);
    process_stop(&process, 0);
    array_free(&output);
    return facts;
}

int run_look_at_others(struct run *run, struct error *err)
{
    for (size_t i = 0; i < run->hosts.count; i++) {
        struct host *host = &run->hosts.items[i];
        char name[64];
        if (!is_far(host) || host == run_server_host(run))
            continue;
        json_t *facts = run_far_facts(run, host, err);
        if (!facts)
            return -ERROR_FAILED;
        snprintf(name, sizeof name, "facts-%s.json", host->plan->name);
        int result = run_folder_write_json(&run->outcome->folder, name, facts, err);
        json_decref(facts);
        if (result < 0)
            return result;
    }
    return 0;
}

void run_tell_host(const struct host *host, json_t *document)
{
    if (is_far(host))
        json_object_update_new(
            document, json_pack("{s:s, s:s, s:s, s:{s:I, s:I}}", "ssh", host->plan->address,
                                "boot_id", host->far.boot_id, "kernel", host->far.kernel,
                                "monotonic", "offset_ns", (json_int_t)host->far.clock_offset_ns,
                                "bound_ns", (json_int_t)host->far.clock_bound_ns));
}

// --- files ---------------------------------------------------------------------------------------

// Waits for a copy to end well.
static int finish_copy(struct run *run, struct process *process, const char *what,
                       const struct host *host, struct error *err)
{
    int status = 0;
    int result = supervisor_wait(&run->supervisor, process, NULL, false,
                                 supervisor_now_ns() + COPY_TIMEOUT_S * SECOND_NS, &status, err);
    if (result == 0)
        result = error_set(err, ERROR_FAILED, "%s host %s does not end", what, host->plan->name);
    else if (result > 0 && status != 0)
        result = supervisor_end_error(err, what, status, host->far.log_path);
    process_stop(process, 0);
    return result < 0 ? result : 0;
}

static int copy(struct run *run, struct host *host, bool fetch, const char *there, const char *here,
                struct error *err)
{
    struct process process;
    const struct process_place place = {.log_path = host->far.log_path};
    command_log_write(&run->log, host->plan->name, fetch ? "fetch %s" : "send to %s", there);
    if (run->log.dry)
        return 0;
    int result = fetch ? far_host_fetch(&host->far, there, here, &place, &process, err)
                       : far_host_send(&host->far, here, there, &place, &process, err);
    return result == 0 ? finish_copy(run, &process, fetch ? "fetching the logs" : "sending files",
                                     host, err)
                       : result;
}

// Where a process on that host writes what belongs into the run's folder `name`.
static int choose_directory(struct run *run, struct host *host, const char *name,
                            char path[LOG_PATH_BYTES], struct error *err)
{
    run_folder_path(&run->outcome->folder, name, path);
    if (!is_far(host))
        return 0;
    snprintf(path, LOG_PATH_BYTES, "%s/%s", host->far.directory, name);
    return keeper_make_directory(&host->keeper, path, err);
}

// What the workload names, to every host behind ssh on which requests are drawn.
static int send_files(struct run *run, struct error *err)
{
    char here[LOG_PATH_BYTES], there[LOG_PATH_BYTES];
    const struct experiment_agent_array *agents = &run->experiment->load.agents;
    int result = 0;
    run_folder_path(&run->outcome->folder, "workload", here);
    for (size_t i = 0; i < run->hosts.count && result == 0; i++) {
        struct host *host = &run->hosts.items[i];
        bool draws = host == run_load_host(run);
        for (size_t j = 0; j < agents->count; j++)
            draws |= agents->items[j].host == i;
        if (!draws || !is_far(host))
            continue;
        result = choose_directory(run, host, "workload", there, err);
        if (result == 0)
            result = copy(run, host, false, there, here, err);
    }
    return result;
}

int run_choose_directories(struct run *run, struct error *err)
{
    char here[LOG_PATH_BYTES];
    struct host *load = run_load_host(run);
    const struct experiment_agent_array *agents = &run->experiment->load.agents;
    for (size_t i = 0; i < agents->count; i++)
        run->load_here |= is_far(&run->hosts.items[agents->items[i].host]);
    int result = is_far(load) || run->load_here ? run_gather_files(run, err) : 0;
    if (result == 0)
        result = choose_directory(run, run_server_host(run), "server", run->server_dir, err);
    if (result == 0)
        result = choose_directory(run, load, "client", run->client_dir, err);
    run_folder_path(&run->outcome->folder, "client", here);
    memcpy(run->load_dir, run->load_here ? here : run->client_dir, sizeof run->load_dir);
    if (result == 0 && is_far(load))
        result = copy(run, load, false, run->client_dir, here, err);
    return result == 0 && run->files_inside ? send_files(run, err) : result;
}

static int fetch(struct run *run, struct host *host, const char *there, const char *name,
                 struct error *err)
{
    char here[LOG_PATH_BYTES];
    if (!is_far(host))
        return 0;
    progress_phase(run->progress, "fetching what host %s wrote", host->plan->name);
    return copy(run, host, true, there, run_folder_path(&run->outcome->folder, name, here), err);
}

int run_fetch(struct run *run, struct error *err)
{
    int result = fetch(run, run_server_host(run), run->server_dir, "server", err);
    return result == 0 && !run->load_here
               ? fetch(run, run_load_host(run), run->client_dir, "client", err)
               : result;
}

// --- the client's clock --------------------------------------------------------------------------

// What agents behind ssh measured comes back on this host's time axis.

int run_start_clock(struct run *run, struct error *err)
{
    char program[RUN_PATH_BYTES], log[LOG_PATH_BYTES];
    struct host *host = run->load_here ? NULL : run_load_host(run);
    if (!any_is_far(run))
        return 0;
    int result = host ? host_program(host, "taillight", program, err)
                      : program_path_self(program, sizeof program, err);
    const char *const argv[] = {program,     "capture", "--out",   run->load_dir,
                                "--backend", "none",    "--quiet", NULL};
    run_folder_path(&run->outcome->folder, "logs/client-clock.log", log);
    if (result == 0)
        result = run_start_command(run, host, argv, true, NULL, log, &run->clock, err);
    return result == 0 && !run->log.dry
               ? run_wait_ready(run, &run->clock, "the clock log", log, err)
               : result;
}

int run_stop_clock(struct run *run, struct error *err)
{
    int status = 0;
    if (run->clock.pid <= 0)
        return 0;
    close(run->clock.input);
    run->clock.input = -1;
    int result = supervisor_wait(&run->supervisor, &run->clock, NULL, false,
                                 supervisor_now_ns() + CLOCK_TIMEOUT_S * SECOND_NS, &status, err);
    return result == 0 || (result > 0 && status)
               ? error_set(err, ERROR_FAILED, "the client's clock log does not end well")
           : result < 0 ? result
                        : 0;
}
