// SPDX-License-Identifier: MIT
#include "experiments/run/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "experiments/common/failed_run.h"
#include "experiments/common/hand_over.h"
#include "experiments/common/program_path.h"
#include "experiments/common/way_out.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/definition/output.h"
#include "experiments/keeper/process_tree.h"
#include "experiments/run/run_orders.h"
#include "experiments/run/run_phases.h"
#include "experiments/servers/server_kind.h"

// --- before anything is started ------------------------------------------------------------------

static bool is_elsewhere(const struct experiment *experiment, size_t host)
{
    return experiment->hosts.items[host].kind->is_elsewhere;
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
        kind ? kind->check_program(&server, err) : program_needed(neighbour->command.items[0], err);
    return result < 0 ? error_prefix(err, "the neighbour `%s`", neighbour->name) : 0;
}

static int check_programs(const struct experiment *experiment, struct error *err)
{
    int result = 0;
    // What is missing on another machine shows when it is started there.
    for (size_t i = 0; i < experiment->hosts.count && result == 0; i++)
        if (experiment->hosts.items[i].kind->program)
            result = program_needed(experiment->hosts.items[i].kind->program, err);
    for (size_t i = 0; i < experiment->servers.count && result == 0; i++)
        if (!is_elsewhere(experiment, experiment->servers.items[i].host))
            result = check_server_program(&experiment->servers.items[i], err);
    for (size_t i = 0; i < experiment->neighbours.count && result == 0; i++)
        if (!is_elsewhere(experiment, experiment->neighbours.items[i].host))
            result = check_neighbour_program(&experiment->neighbours.items[i], err);
    return result;
}

static int write_experiment(struct run *run, struct error *err)
{
    json_t *document = experiment_to_json(run->experiment);
    if (!document)
        return error_set(err, ERROR_FAILED, "out of memory");
    json_object_set(document, "warnings", run->warnings);
    json_object_set(document, "tuned", run->tuned);
    json_object_set(document, "neighbour_loads", run->neighbour_loads);
    json_object_set(document, "server_cpu", run->server_cpu);
    for (size_t i = 0; i < run->hosts.count; i++) {
        json_t *host =
            json_object_get(json_object_get(document, "hosts"), run->hosts.items[i].plan->name);
        json_object_set_new(host, "kind", json_string(run->hosts.items[i].kind->name));
        json_object_set_new(host, "address", json_string(run->hosts.items[i].address));
        if (run->hosts.items[i].kind->is_elsewhere)
            run->hosts.items[i].kind->add_facts(&run->hosts.items[i], host);
    }
    int result = run_folder_write_json(run->folder, "experiment.json", document, err);
    json_decref(document);
    return result;
}

// --- phases, in their order ----------------------------------------------------------------------

// The shim's memory is there before the server, which then attaches without a system call; the
// server's keeper removes it however the run ends.
static int make_shim_directory(struct run *run, struct error *err)
{
    bool wanted = false;
    for (size_t i = 0; i < run->experiment->servers.count; i++)
        wanted |= run->experiment->servers.items[i].shim;
    if (!wanted)
        return 0;
    int result = run_server_host(run)->kind->find_program(run_server_host(run),
                                                          "libtaillight-shim.so", run->shim, err);
    if (result < 0)
        return result;
    // Who may write into it is told its name: the servers and the capture, by their environment. It
    // is in a folder that nobody can list.
    uint64_t secret[2];
    if (getrandom(secret, sizeof secret, 0) != sizeof secret)
        return error_set_errno(err, ERROR_FAILED, "no random name");
    snprintf(run->shim_dir, sizeof run->shim_dir, "/dev/shm/taillight-%d-%llx/%016llx%016llx",
             getpid(), (unsigned long long)supervisor_now_ns(), (unsigned long long)secret[0],
             (unsigned long long)secret[1]);
    result = keeper_make_shim_directory(&run_server_host(run)->keeper, run->shim_dir,
                                        run->experiment->shim_memory_bytes, err);
    if (result < 0)
        run->shim_dir[0] = '\0';
    return result;
}

static int start_server(struct run *run, size_t number, struct error *err)
{
    char path[LOG_PATH_BYTES], name[100];
    const struct experiment_server *plan = &run->experiment->servers.items[number];
    bool shim = plan->shim && run->shim_dir[0];
    progress_phase(run->progress, "%s the server `%s`",
                   plan->kind->runs_already ? "looking for" : "starting", plan->name);
    snprintf(name, sizeof name, "logs/server-%s.log", plan->name);
    run_folder_path(run->folder, name, path);
    const struct server_surroundings around = {.host = &run->hosts.items[plan->host],
                                               .from = run_load_host(run),
                                               .shim_path = shim ? run->shim : NULL,
                                               .shim_dir = shim ? run->shim_dir : NULL,
                                               .log_path = path,
                                               .folder = run->folder,
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

// --- a run from its start to its end -------------------------------------------------------------

static int run_phases(struct run *run, struct error *err)
{
    int (*const phases[])(struct run *, struct error *) = {run_start_hosts,
                                                           run_collect_facts,
                                                           run_tune,
                                                           write_experiment,
                                                           run_choose_directories,
                                                           start_servers,
                                                           run_start_neighbours,
                                                           run_prepare,
                                                           run_start_hops,
                                                           run_start_capture,
                                                           run_start_clock,
                                                           run_load,
                                                           run_stop_hops,
                                                           run_stop_clock,
                                                           run_stop_capture,
                                                           run_fetch,
                                                           write_experiment};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        int result = phases[i](run, err);
        if (result == 0) // somebody may have interrupted what is not waited for there
            result = supervisor_check(&run->supervisor, err);
        if (result < 0)
            return result;
    }
    return 0;
}

// Ends everything at once, of a run that a person interrupted: one process that takes its time must
// not cost that person more than a moment. Loads are told, and not killed yet: what they measured
// is being written, and they end with this process where the way out is taken meanwhile.
static void end_at_once(struct run *run)
{
    struct process *all[2 * MOST_WATCHED];
    size_t count = 0;
    for (size_t i = 0; i < run->loader_count; i++)
        process_ask_to_end(&run->loaders[i].process);
    all[count++] = &run->clock;
    for (int i = 0; i < STAMPED_MACHINES; i++)
        all[count++] = &run->hops[i].process;
    all[count++] = &run->capture;
    for (size_t i = 0; i < run->experiment->neighbours.count && count + 2 < 2 * MOST_WATCHED; i++) {
        all[count++] = &run->neighbours[i].process;
        all[count++] = &run->neighbours[i].server.process;
    }
    for (size_t i = 0; i < run->experiment->servers.count && count < 2 * MOST_WATCHED; i++)
        all[count++] = &run->servers[i].process;
    process_stop_all(all, count, INTERRUPT_GRACE_MS);
}

// Ends whatever runs, in the reverse order of its start, and undoes every change.
static int tear_down(struct run *run, struct error *err)
{
    struct error ignored;
    const bool hurried = !run->log.dry && supervisor_check(&run->supervisor, &ignored) < 0;
    if (hurried)
        end_at_once(run);
    if (hurried && run->owner) // while it is certain that somebody does
        run_folder_hand_over(run->folder, run->owner, &ignored);
    run_end_neighbours(run);
    run_end_loads(run);
    process_stop_all((struct process *[]){&run->clock, &run->hops[STAMPED_SERVER].process,
                                          &run->hops[STAMPED_CLIENT].process, &run->capture},
                     4, STOP_GRACE_MS);
    for (size_t i = run->experiment->servers.count; i-- > 0;)
        server_stop(&run->servers[i], &run->supervisor);
    run_unwatch_links(run);
    int result = hosts_end(&run->hosts, hurried, &run->log, err);
    // What left its tree's mark behind, too, became ours when its parent ended.
    unsigned orphans = run->log.dry ? 0 : process_tree_kill_orphans(run->spared, ORPHANS_GRACE_MS);
    if (orphans)
        command_log_write(&run->log, "run", "killed %u processes that others had left", orphans);
    return result;
}

// A dry run: writes what would be done into the log, in order.
static int run_dry(struct run *run, FILE *out, struct error *err)
{
    struct error ignored;
    int (*const phases[])(struct run *, struct error *) = {
        run_start_hosts,   run_log_fact_questions, run_tune,    run_choose_directories,
        start_servers,     run_start_neighbours,   run_prepare, run_start_hops,
        run_start_capture, run_start_clock,        run_load,    run_fetch};
    run->log = (struct command_log){.file = out, .dry = true};
    int result = 0;
    for (size_t i = 0; i < sizeof phases / sizeof *phases && result == 0; i++)
        result = phases[i](run, err);
    tear_down(run, &ignored);
    return result;
}

// The way out of a person who interrupts, when undoing takes longer than that person waits: as
// after a SIGKILL, the children end with this process, and the keepers of the hosts undo what is
// not yet undone. Called in a thread, while the run goes on.
static void leave(void *context, bool again)
{
    struct run *run = context;
    const char *why = again ? "interrupted again" : "interrupted";
    way_out_say(
        "%staillight: %s: what is not yet undone its keepers undo meanwhile; if one of them is "
        "killed, `taillight doctor --restore` does\n",
        run->progress->terminal ? "\n" : "", why);
    if (run->log.file && ftrylockfile(run->log.file) == 0) { // else it is written just now
        command_log_write(&run->log, "run", "%s: left the rest to the keepers", why);
        funlockfile(run->log.file);
    }
    // Before it finds its orders unanswered, and says so.
    if (run->spared > 0)
        kill(run->spared, SIGTERM);
    _exit(ERROR_FAILED);
}

static int run_in_folder(struct run *run, struct error *err)
{
    char path[LOG_PATH_BYTES];
    struct error undone;
    struct way_out way_out = {.within_ms = WAY_OUT_MS, .leave = leave, .context = run};
    process_tree_adopt_orphans();
    int result =
        command_log_open(&run->log, run_folder_path(run->folder, "commands.log", path), err);
    if (result == 0)
        result = supervisor_open(&run->supervisor, err);
    if (result < 0)
        goto out;
    way_out.taken = run->supervisor.taken;
    result = way_out_open(&way_out, err);
    if (result == 0)
        result = run_phases(run, err);
    progress_end(run->progress);
    if (result < 0)
        command_log_write(&run->log, "run", "%s: %s", run->loading ? "failed" : FAILED_BEFORE_LOAD,
                          err->text);
    int ended = tear_down(run, &undone);
    if (ended < 0 && result == 0) {
        *err = undone;
        result = ended;
    } else if (ended < 0) {
        run_warn(run, "%s", undone.text);
    }
    way_out_close(&way_out);
    supervisor_close(&run->supervisor);
    // Who interrupts while all is undone does not want it analyzed either.
    if (result == 0)
        result = supervisor_check(&run->supervisor, err);
out:
    command_log_close(&run->log);
    return result;
}

// What the run leaves belongs to whom it was made for, however it ends; what is made before the
// load begins already then, so that the load can write as that person.
static int run_in_new_folder(struct run *run, const struct run_settings *settings,
                             struct error *err)
{
    struct error kept;
    struct run_folder *folder = run->folder;
    int result = run_folder_make(folder, settings->folder, run->experiment->name, run->owner, err);
    if (result < 0)
        return result;
    result = run_write_inputs(folder, run->experiment, err);
    if (result == 0 && run->owner)
        result = run_folder_hand_over(folder, run->owner, err);
    if (result == 0)
        result = run_in_folder(run, err);
    int given = run->owner ? run_folder_hand_over(folder, run->owner, result < 0 ? &kept : err) : 0;
    return result < 0 ? result : given;
}

int run_make_folder(const char *name, const struct run_settings *settings,
                    struct run_folder *folder, struct error *err)
{
    return settings->orders
               ? run_order_folder(settings->orders, settings->folder, name, folder, err)
               : run_folder_make(folder, settings->folder, name, settings->owner, err);
}

int run_experiment(const struct experiment *experiment, const struct run_settings *settings,
                   struct run_folder *folder, struct error *err)
{
    if (settings->orders && !settings->dry)
        return run_order(settings->orders, experiment, settings->folder, folder, err);
    struct run *run = calloc(1, sizeof *run);
    if (!run)
        return error_set(err, ERROR_FAILED, "out of memory");
    run->experiment = experiment;
    run->warnings = json_array();
    run->tuned = json_array();
    run->folder = folder;
    run->owner = settings->owner;
    run->spared = settings->spared;
    run->progress = settings->progress;
    run->supervisor.signals = -1;
    run->capture = run->clock = (struct process){.input = -1, .output = -1};
    for (int i = 0; i < STAMPED_MACHINES; i++)
        run->hops[i].process = run->clock;
    for (size_t i = 0; i < EXPERIMENT_SERVERS_MAX; i++)
        run->servers[i].process = run->clock;
    int result = run->warnings ? run_make_neighbours(run, err)
                               : error_set(err, ERROR_FAILED, "out of memory");
    if (result == 0)
        result = run_make_loaders(run, err);
    if (result == 0)
        result = check_programs(experiment, err);
    if (result == 0 && settings->dry) {
        snprintf(folder->path, sizeof folder->path, "%.4000s",
                 settings->folder ? settings->folder : "RUN");
        result = run_dry(run, settings->dry, err);
    } else if (result == 0) {
        result = run_in_new_folder(run, settings, err);
    }
    free(run->neighbours);
    run_free_loaders(run);
    json_decref(run->warnings);
    json_decref(run->tuned);
    json_decref(run->neighbour_loads);
    json_decref(run->server_cpu);
    free(run);
    return result;
}
