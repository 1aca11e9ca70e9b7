// SPDX-License-Identifier: MIT
//
// The phases in which the servers are loaded: with their datasets, then with requests while
// neighbours come and go. Where there are several loads, a process makes each, all begin at the
// same instant, and the first says how long the run is.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "experiments/common/core_times.h"
#include "experiments/common/program_path.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/run/run_load_ends.h"
#include "experiments/run/run_phases.h"
#include "experiments/run/run_trace.h"
#include "experiments/servers/server_kind.h"

// How long the load generator may take, besides the duration and the timeout it was given. Each is
// for a machine that does what it did on ours, and a hundred times slower.
enum {
    PREPARE_S = 60,
    PREPARE_KEYS_PER_S = 2000,     // stored, and read again
    BEGIN_S = 60,                  // to connect ...
    BEGIN_REQUESTS_PER_S = 200000, // ... and to draw its schedule
    TOGETHER_MS = 20,              // for all loads to hear when they begin
};

int run_make_loaders(struct run *run, struct error *err)
{
    const size_t count = experiment_load_count(run->experiment);
    run->loaders = calloc(count, sizeof *run->loaders);
    if (!run->loaders)
        return error_set(err, ERROR_FAILED, "out of memory");
    run->loader_count = count;
    for (size_t i = 0; i < count; i++) {
        struct loader *loader = &run->loaders[i];
        loader->plan = experiment_load_at(run->experiment, i);
        loader->process = (struct process){.input = -1, .output = -1};
        run_load_folder(i ? loader->plan->name : NULL, loader->folder);
    }
    return 0;
}

void run_free_loaders(struct run *run)
{
    for (size_t i = 0; i < run->loader_count; i++)
        array_free(&run->loaders[i].output);
    free(run->loaders);
}

void run_end_loads(struct run *run)
{
    struct process *all[MOST_WATCHED];
    for (size_t i = 0; i < run->loader_count; i++)
        all[i] = &run->loaders[i].process;
    process_stop_all(all, run->loader_count, STOP_GRACE_MS);
}

// Where it loads from.
static struct host *host_of(struct run *run, const struct loader *loader)
{
    return &run->hosts.items[loader->plan->from];
}

// A file in its folder, of the run's.
static char *file_of(const struct run *run, const struct loader *loader, const char *name,
                     char path[LOG_PATH_BYTES])
{
    char inside[LOAD_FOLDER_BYTES + 32];
    snprintf(inside, sizeof inside, "%s/%s", loader->folder, name);
    return run_folder_path(run->folder, inside, path);
}

// "logs/load.log", and of a load beside the first "logs/load-NAME.log".
static char *log_of(const struct run *run, const struct loader *loader, const char *what,
                    char path[LOG_PATH_BYTES])
{
    char name[80];
    const bool first = loader == run->loaders;
    snprintf(name, sizeof name, "logs/%s%s%s.log", what, first ? "" : "-",
             first ? "" : loader->plan->name);
    return run_folder_path(run->folder, name, path);
}

// How it connects, be it to store or to load.
static void add_connection(const struct experiment_load *load, struct command_line *line)
{
    if (load->user)
        command_line_add_option(line, "--user", "%s", load->user);
    if (load->password_file)
        command_line_add_option(line, "--password-file", "%s", load->password_file);
    if (load->tls_ca)
        command_line_add_option(line, "--tls-ca", "%s", load->tls_ca);
    else if (load->tls)
        command_line_add(line, load->tls_insecure ? "--tls-insecure" : "--tls");
    if (load->tls_cert)
        command_line_add_option(line, "--tls-cert", "%s", load->tls_cert);
    if (load->tls_key)
        command_line_add_option(line, "--tls-key", "%s", load->tls_key);
    if (load->tls_full_handshakes)
        command_line_add(line, "--tls-full-handshakes");
    if (load->cluster)
        command_line_add(line, "--cluster");
    if (load->sentinel)
        command_line_add_option(line, "--sentinel", "%s", load->sentinel);
}

// Begins the line of a load on that host (NULL: here) whose workload lies in *folder there. Returns
// its working directory, from which the workload's files are found and *folder is named then; NULL:
// ours.
static const char *begin_load(struct run *run, const struct loader *loader, const struct host *host,
                              const char **folder, const char *mode, struct command_line *line)
{
    bool there = host && host->kind->is_elsewhere;
    if (run->files_inside && !there)
        *folder = loader->folder;
    command_line_add_list(line, (const char *const[]){"taillight", "load", mode, NULL});
    const struct experiment_server *server = &run->experiment->servers.items[loader->plan->to];
    // Keys are stored over TCP, which loses none.
    command_line_add_option(line, "--server", "%s%s:%u", !mode && server->over_udp ? "udp:" : "",
                            server_address(server, run_server_host(run)), server->port);
    command_line_add_option(line, "--workload", "%s/workload.yaml", *folder);
    add_connection(loader->plan, line);
    return !run->files_inside ? NULL : there ? host->directory : run->folder->path;
}

// What servers answer is read by the person for whom the run is, and without capabilities, where
// the plan lets it: agents enter namespaces by themselves, and stamps of a network card, which the
// way to another machine may have, are root's to turn on. NULL: as we are.
static const struct person *load_person(struct run *run, const struct loader *loader)
{
    char program[RUN_PATH_BYTES];
    struct error ignored;
    const struct experiment_load *load = loader->plan;
    bool far = host_of(run, loader)->kind->is_elsewhere || run_server_host(run)->kind->is_elsewhere;
    if (!run->owner || run->log.dry || far || load->agents.count || strcmp(load->stamps, "hw") == 0)
        return NULL;
    if (program_path_self(program, sizeof program, &ignored) == 0 &&
        rights_reach(run->owner, program, X_OK) &&
        rights_reach(run->owner, loader->directory, W_OK))
        return run->owner;
    run_warn(run, "the load runs as root: %s cannot reach %s", run->owner->name, program);
    return NULL;
}

static int prepare(struct run *run, const struct loader *loader, struct error *err)
{
    char what[LOADER_NAME_BYTES + sizeof "loading the dataset of "];
    struct command_line line = {.failed = false};
    struct process process;
    // Of a load that agents share, whose controller is here, the dataset still comes from its host.
    const char *folder = loader == run->loaders ? run->client_dir : loader->directory;
    const struct experiment_server *server = &run->experiment->servers.items[loader->plan->to];
    const uint64_t keys = loader->plan->workload.key_count;
    if (server->kind->runs_already && !server->fill)
        return 0; // what it holds is its own
    const char *directory =
        begin_load(run, loader, host_of(run, loader), &folder, "--prepare", &line);
    command_line_add(&line, "--quiet");
    progress_phase(run->progress, "loading and verifying %s keys", TEXT_COUNT(keys));
    char path[LOG_PATH_BYTES];
    log_of(run, loader, "prepare", path);
    const struct run_command command = {.line = &line,
                                        .directory = directory,
                                        .log_path = path,
                                        .cores = &host_of(run, loader)->plan->cores,
                                        .as = load_person(run, loader)};
    int result = run_start_command(run, host_of(run, loader), &command, &process, err);
    if (result < 0 || run->log.dry)
        return result;
    snprintf(what, sizeof what, "loading the dataset%s%s%s",
             run->loader_count > 1 ? " of the load `" : "",
             run->loader_count > 1 ? loader->plan->name : "", run->loader_count > 1 ? "`" : "");
    result = supervisor_finish(&run->supervisor, &process, what, path,
                               PREPARE_S + (unsigned)(keys / PREPARE_KEYS_PER_S), err);
    process_stop(&process, 0);
    return result;
}

int run_prepare(struct run *run, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < run->loader_count && result == 0; i++)
        result = prepare(run, &run->loaders[i], err);
    return result;
}

// --- the load ------------------------------------------------------------------------------------

// "latency,name=probe,rate=1000,connections=16,threads=1,cores=0+2,netns=/proc/4711/ns/net"
static void add_agent(struct run *run, const struct experiment_agent *agent,
                      struct command_line *line)
{
    const struct agent_spec *spec = &agent->spec;
    const struct host *host = &run->hosts.items[agent->host];
    char cores[256];
    units_format_cores(&spec->cores, cores, sizeof cores);
    for (char *comma = cores; (comma = strchr(comma, ','));)
        *comma = '+';
    command_line_add_option(
        line, "--agent", "%s,name=%s,rate=%.17g,connections=%llu,threads=%llu,cores=%s%s%s",
        agent_kind_name(spec->kind), spec->name, spec->rate, (unsigned long long)spec->connections,
        (unsigned long long)spec->threads, cores, host->agent_place[0] ? "," : "",
        host->agent_place);
}

static int start_load(struct run *run, struct loader *loader, struct error *err)
{
    const struct experiment_load *load = loader->plan;
    const bool first = loader == run->loaders, several = run->loader_count > 1;
    struct command_line line = {.failed = false};
    struct host *host = run->load_here ? NULL : host_of(run, loader);
    const char *folder = loader->directory;
    const char *directory = begin_load(run, loader, host, &folder, NULL, &line);
    command_line_add_option(&line, "--rate", "%.17g", load->rate);
    command_line_add_number(&line, "--connections", load->connections);
    command_line_add_number(&line, "--depth", load->depth);
    command_line_add_number(&line, "--seed", load->seed);
    command_line_add_option(&line, "--stamps", "%s", load->stamps);
    command_line_add_ns(&line, "--timeout", load->timeout_ns);
    if (load->session)
        command_line_add_number(&line, "--session", load->session);
    if (load->memory_bytes)
        command_line_add_number(&line, "--memory", load->memory_bytes);
    command_line_add_option(&line, "--samples", "%s", folder);
    // If this program dies, nobody reads what is printed; of a host behind ssh its link keeps it.
    if (!host || !host->kind->is_elsewhere)
        command_line_add_option(&line, "--out", "%s", folder);
    command_line_add_list(&line, (const char *const[]){"--announce", "--json", "--quiet", NULL});
    if (several)
        command_line_add(&line, "--hold");
    if (first)
        run_add_slow(run, &line);
    if (first && run->progress->terminal && !run->progress->quiet && !load->agents.count)
        command_line_add(&line, "--tell-live");
    if (load->sleep)
        command_line_add(&line, "--sleep");
    if (load->method.percentile) {
        command_line_add_option(&line, "--target", "%s", load->method.percentile);
        command_line_add_ns(&line, "--ci", load->method.interval_ns);
        command_line_add_option(&line, "--confidence", "%.17g", load->method.confidence);
    }
    command_line_add_ns(&line, load->method.percentile ? "--max-duration" : "--duration",
                        load->duration_ns);
    for (size_t i = 0; i < load->agents.count; i++)
        add_agent(run, &load->agents.items[i], &line);
    log_of(run, loader, "load", loader->log_path);
    char summary[LOG_PATH_BYTES];
    const struct run_command command = {.line = &line,
                                        .directory = directory,
                                        .log_path = loader->log_path,
                                        .input = several,
                                        .cores = host ? &host->plan->cores : NULL,
                                        .last_words = file_of(run, loader, "load.json", summary),
                                        .as = load_person(run, loader)};
    return run_start_command(run, host, &command, &loader->process, err);
}

// Waits for the next line of a load that has not begun, and takes it if it says `key`.
static int wait_line(struct run *run, struct loader *loader, const char *key, json_t **line,
                     struct error *err)
{
    int status = 0;
    char what[LOADER_NAME_BYTES];
    const double patience_s = BEGIN_S + loader_requests(loader->plan) / BEGIN_REQUESTS_PER_S;
    int result = supervisor_wait(&run->supervisor, &loader->process, &loader->output, true,
                                 supervisor_now_ns() + (uint64_t)(patience_s * 1e9), &status, err);
    if (result < 0)
        return result;
    *line = run_first_line(&loader->output);
    if (json_is_integer(json_object_get(*line, key))) {
        loader_drop_line(&loader->output);
        return 0;
    }
    json_decref(*line);
    *line = NULL;
    if (!loader->process.pid)
        return loader_end_error(run, loader, status, err);
    return error_set(err, ERROR_FAILED, "%s does not begin within %.0f s; see %s",
                     loader_name(run, loader, what), patience_s, loader->log_path);
}

static int64_t number_of(const json_t *line, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(line, key));
}

// Reads when the load's first request is due. Everything else is timed from there.
static int wait_begin(struct run *run, struct loader *loader, uint64_t *begin_ns, struct error *err)
{
    json_t *line = NULL;
    int result = wait_line(run, loader, "begin_ns", &line, err);
    if (result == 0) // by the clock of its host
        *begin_ns = (uint64_t)(number_of(line, "begin_ns") -
                               (run->load_here ? 0 : host_of(run, loader)->clock_offset_ns));
    json_decref(line);
    return result;
}

static int tell_begin(struct run *run, struct loader *loader, int64_t at_ns, struct error *err)
{
    char what[LOADER_NAME_BYTES];
    // If it is gone, whoever waits for its begin reports why.
    int result = dprintf(loader->process.input, "%lld\n", (long long)at_ns) < 0 && errno != EPIPE
                     ? error_set_errno(err, ERROR_FAILED, "%s cannot be told to begin",
                                       loader_name(run, loader, what))
                     : 0;
    close(loader->process.input);
    loader->process.input = -1;
    return result;
}

// Waits until all loads are ready, and has them begin at the same instant, by the clock of the
// machine that all of them are on.
static int begin_together(struct run *run, struct error *err)
{
    int64_t at_ns = 0;
    int result = 0;
    for (size_t i = 0; i < run->loader_count && result == 0; i++) {
        json_t *line = NULL;
        result = wait_line(run, &run->loaders[i], "ready_ns", &line, err);
        const int64_t now_ns =
            (int64_t)supervisor_now_ns() + host_of(run, &run->loaders[i])->clock_offset_ns;
        const int64_t able_ns = now_ns + number_of(line, "needs_ns");
        at_ns = able_ns > at_ns ? able_ns : at_ns;
        json_decref(line);
    }
    at_ns += TOGETHER_MS * 1000000ll;
    for (size_t i = 0; i < run->loader_count && result == 0; i++)
        result = tell_begin(run, &run->loaders[i], at_ns, err);
    return result;
}

static bool has_line(const struct text_buffer *output)
{
    return output->count && memchr(output->items, '\n', output->count);
}

// Waits for the first load's end while the neighbours come and go.
static int follow_load(struct run *run, uint64_t begin_ns, int *status, struct error *err)
{
    struct loader *first = run->loaders;
    const struct experiment_load *load = first->plan;
    struct text_buffer *output = &first->output;
    uint64_t end_ns = begin_ns + load->duration_ns;
    char live[256] = "", what[LOADER_NAME_BYTES];
    uint64_t deadline_ns = end_ns + (uint64_t)(loader_grace_s(load) * 1e9);
    for (;;) {
        uint64_t now_ns = supervisor_now_ns(), next_ns;
        if (now_ns >= deadline_ns)
            return error_set(err, ERROR_FAILED,
                             "%s (process %d) does not end: %.0f s after its schedule it still "
                             "runs; see %s",
                             loader_name(run, first, what), first->process.pid,
                             loader_grace_s(load), first->log_path);
        int result = run_update_neighbours(run, begin_ns, now_ns, &next_ns, err);
        if (result < 0)
            return result;
        result = loads_check_others(run, err);
        if (result < 0)
            return result;
        run_check_neighbours(run);
        run_turn_trace(run, begin_ns, now_ns, &next_ns);
        if (loader_take_notices(output, live, sizeof live))
            run_take_snapshot(run);
        if (now_ns < end_ns)
            progress_update(run->progress, "loading, %s%.0f s to go%s",
                            load->method.percentile ? "at most " : "",
                            (double)(end_ns - now_ns) / SECOND_NS, live);
        uint64_t wake_ns = now_ns + SECOND_NS;
        // Only notices come before the summary.
        result = supervisor_wait(&run->supervisor, &first->process, output, !has_line(output),
                                 next_ns < wake_ns ? next_ns : wake_ns, status, err);
        if (result < 0 || (result && !first->process.pid))
            return result < 0 ? result : 0;
    }
}

// How busy the server's cores were, for experiment.json; not of machines behind ssh.
static void note_server_cpu(struct run *run, const struct core_times *before)
{
    struct core_times now;
    const cpu_set_t *cores = &run_server_host(run)->plan->cores;
    if (before->cores == 0 || !core_times_read(cores, &now))
        return;
    char text[1024];
    json_decref(run->server_cpu);
    run->server_cpu = json_pack(
        "{s:s,s:I,s:f}", "cores", units_format_cores(cores, text, sizeof text), "elapsed_ns",
        (json_int_t)(now.now_ns - before->now_ns), "busy_ns", core_times_busy_ns(before, &now));
}

// Starts all loads; *begin_ns: when the first begins.
static int begin_loads(struct run *run, uint64_t *begin_ns, struct error *err)
{
    uint64_t other_ns;
    int result = 0;
    for (size_t i = 0; i < run->loader_count && result == 0; i++)
        result = start_load(run, &run->loaders[i], err);
    if (result < 0 || run->log.dry)
        return result;
    if (run->loader_count > 1)
        result = begin_together(run, err);
    for (size_t i = 0; i < run->loader_count && result == 0; i++)
        result = wait_begin(run, &run->loaders[i], i ? &other_ns : begin_ns, err);
    return result;
}

static void say_loads(struct run *run)
{
    char duration[40], beside[60] = "";
    const struct experiment_load *load = &run->experiment->load;
    if (run->loader_count > 1)
        snprintf(beside, sizeof beside, ", and %s load%s beside it",
                 TEXT_COUNT(run->loader_count - 1), run->loader_count > 2 ? "s" : "");
    progress_phase(run->progress, "loading %s%s at %s %srequests/s%s",
                   load->method.percentile ? "at most " : "",
                   units_format_ns((double)load->duration_ns, duration, sizeof duration),
                   TEXT_RATE(load->rate), load->workload.fanout > 1 ? "logical " : "", beside);
}

int run_load(struct run *run, struct error *err)
{
    struct core_times cpu = {0};
    uint64_t begin_ns = 0;
    int status = 0;
    say_loads(run);
    int result = begin_loads(run, &begin_ns, err);
    run->loading = begin_ns > 0;
    if (result == 0 && run->log.dry)
        return run_update_neighbours(run, 0, run->experiment->load.duration_ns, &begin_ns, err);
    if (result == 0 && !run_server_host(run)->kind->is_elsewhere &&
        !core_times_read(&run_server_host(run)->plan->cores, &cpu))
        cpu.cores = 0;
    if (result == 0)
        result = follow_load(run, begin_ns, &status, err);
    if (result == 0)
        note_server_cpu(run, &cpu);
    if (result == 0)
        result = loads_take_end(run, status, err);
    if (result < 0 && begin_ns)
        loads_salvage(run);
    run_stop_neighbours(run, result == 0);
    if (result == 0)
        result = loads_end_others(run, err);
    return result;
}
