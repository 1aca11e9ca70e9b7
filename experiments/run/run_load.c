// SPDX-License-Identifier: MIT
//
// The phases in which the server is loaded: with its dataset, then with requests while neighbours
// come and go.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

#include "base/units.h"
#include "experiments/common/core_times.h"
#include "experiments/common/program_path.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/run/run_phases.h"
#include "experiments/run/run_trace.h"
#include "experiments/servers/server_kind.h"

#define LOAD_SUMMARY "client/load.json" // in the run's folder

// How long the load generator may take, besides the duration and the timeout it was given. Each is
// for a machine that does what it did on ours, and a hundred times slower.
enum {
    PREPARE_S = 60,
    PREPARE_KEYS_PER_S = 2000,     // stored, and read again
    BEGIN_S = 60,                  // to connect ...
    BEGIN_REQUESTS_PER_S = 200000, // ... and to draw its schedule
    END_S = 30,
    END_REQUESTS_PER_S = 100000, // judged, and their samples written
    SALVAGE_S = 5,
};

static double requests_of(const struct experiment_load *load)
{
    return load->rate * (double)load->duration_ns / 1e9;
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
    if (load->cluster)
        command_line_add(line, "--cluster");
    if (load->sentinel)
        command_line_add_option(line, "--sentinel", "%s", load->sentinel);
}

// Begins the line of a load on that host (NULL: here) whose workload lies in *folder there. Returns
// its working directory, from which the workload's files are found and *folder is named then; NULL:
// ours.
static const char *begin_load(struct run *run, const struct host *host, const char **folder,
                              const char *mode, struct command_line *line)
{
    bool there = host && host->kind->is_elsewhere;
    if (run->files_inside && !there)
        *folder = "client";
    command_line_add_list(line, (const char *const[]){"taillight", "load", mode, NULL});
    const struct experiment_server *server =
        &run->experiment->servers.items[run->experiment->load.to];
    // Keys are stored over TCP, which loses none.
    command_line_add_option(line, "--server", "%s%s:%u", !mode && server->over_udp ? "udp:" : "",
                            server_address(server, run_server_host(run)), server->port);
    command_line_add_option(line, "--workload", "%s/workload.yaml", *folder);
    add_connection(&run->experiment->load, line);
    return !run->files_inside ? NULL : there ? host->directory : run->folder->path;
}

// What servers answer is read by the person for whom the run is, and without capabilities, where
// the plan lets it: agents enter namespaces by themselves, and stamps of a network card, which the
// way to another machine may have, are root's to turn on. NULL: as we are.
static const struct person *load_person(struct run *run)
{
    char program[RUN_PATH_BYTES];
    struct error ignored;
    const struct experiment_load *load = &run->experiment->load;
    bool far = run_load_host(run)->kind->is_elsewhere || run_server_host(run)->kind->is_elsewhere;
    if (!run->owner || run->log.dry || far || load->agents.count || strcmp(load->stamps, "hw") == 0)
        return NULL;
    if (program_path_self(program, sizeof program, &ignored) == 0 &&
        rights_reach(run->owner, program, X_OK) && rights_reach(run->owner, run->client_dir, W_OK))
        return run->owner;
    run_warn(run, "the load runs as root: %s cannot reach %s", run->owner->name, program);
    return NULL;
}

int run_prepare(struct run *run, struct error *err)
{
    struct command_line line = {.failed = false};
    struct process process;
    const char *folder = run->client_dir;
    const struct experiment_server *server =
        &run->experiment->servers.items[run->experiment->load.to];
    if (server->kind->runs_already && !server->fill)
        return 0; // what it holds is its own
    const char *directory = begin_load(run, run_load_host(run), &folder, "--prepare", &line);
    command_line_add(&line, "--quiet");
    progress_phase(run->progress, "loading and verifying %llu keys",
                   (unsigned long long)run->experiment->workload.key_count);
    char path[LOG_PATH_BYTES];
    run_folder_path(run->folder, "logs/prepare.log", path);
    const struct run_command command = {
        .line = &line, .directory = directory, .log_path = path, .as = load_person(run)};
    int result = run_start_command(run, run_load_host(run), &command, &process, err);
    if (result < 0 || run->log.dry)
        return result;
    result = supervisor_finish(
        &run->supervisor, &process, "loading the dataset", path,
        PREPARE_S + (unsigned)(run->experiment->workload.key_count / PREPARE_KEYS_PER_S), err);
    process_stop(&process, 0);
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

static int start_load(struct run *run, struct error *err)
{
    const struct experiment_load *load = &run->experiment->load;
    struct command_line line = {.failed = false};
    struct host *host = run->load_here ? NULL : run_load_host(run);
    const char *folder = run->load_dir;
    const char *directory = begin_load(run, host, &folder, NULL, &line);
    command_line_add_option(&line, "--rate", "%.17g", load->rate);
    command_line_add_number(&line, "--connections", load->connections);
    command_line_add_number(&line, "--depth", load->depth);
    command_line_add_number(&line, "--seed", load->seed);
    command_line_add_option(&line, "--stamps", "%s", load->stamps);
    command_line_add_ns(&line, "--timeout", load->timeout_ns);
    if (load->memory_bytes)
        command_line_add_number(&line, "--memory", load->memory_bytes);
    command_line_add_option(&line, "--samples", "%s", folder);
    // If this program dies, nobody reads what is printed; of a host behind ssh its link keeps it.
    if (!host || !host->kind->is_elsewhere)
        command_line_add_option(&line, "--out", "%s", folder);
    command_line_add_list(&line, (const char *const[]){"--announce", "--json", "--quiet", NULL});
    run_add_slow(run, &line);
    if (run->progress->terminal && !run->progress->quiet && !load->agents.count)
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
    run_folder_path(run->folder, "logs/load.log", run->load_log);
    char summary[LOG_PATH_BYTES];
    const struct run_command command = {.line = &line,
                                        .directory = directory,
                                        .log_path = run->load_log,
                                        .last_words =
                                            run_folder_path(run->folder, LOAD_SUMMARY, summary),
                                        .as = load_person(run)};
    return run_start_command(run, host, &command, &run->load, err);
}

static int load_end_error(struct run *run, int status, struct error *err)
{
    return supervisor_end_error(err, "the load generator", status, run->load_log);
}

// Takes a line from the begin of what a process has printed.
static void drop_line(struct text_buffer *output)
{
    const char *end = output->count ? memchr(output->items, '\n', output->count) : NULL;
    size_t bytes = end ? (size_t)(end - output->items) + 1 : output->count;
    if (bytes)
        memmove(output->items, output->items + bytes, output->count - bytes);
    output->count -= bytes;
}

// Takes the lines that come while the load lasts: of slow replies, and of the live view, whose last
// goes to `live`. What is left begins the summary, if there is anything. Returns whether replies
// were slow.
static bool take_notices(struct text_buffer *output, char *live, size_t live_bytes)
{
    bool slow = false, taken = true;
    while (taken) {
        json_t *line = run_first_line(output);
        const char *view = json_string_value(json_object_get(line, "live"));
        if (view)
            snprintf(live, live_bytes, ": %s", view);
        taken = view || json_object_get(line, "slow");
        slow |= taken && !view;
        if (taken)
            drop_line(output);
        json_decref(line);
    }
    return slow;
}

// Reads when the load's first request is due. Everything else is timed from there.
static int wait_begin(struct run *run, struct text_buffer *output, uint64_t *begin_ns,
                      struct error *err)
{
    int status = 0;
    const double patience_s = BEGIN_S + requests_of(&run->experiment->load) / BEGIN_REQUESTS_PER_S;
    int result = supervisor_wait(&run->supervisor, &run->load, output, true,
                                 supervisor_now_ns() + (uint64_t)(patience_s * 1e9), &status, err);
    if (result < 0)
        return result;
    json_t *line = run_first_line(output), *begin = json_object_get(line, "begin_ns");
    if (json_is_integer(begin)) { // by the clock of its host
        *begin_ns = (uint64_t)(json_integer_value(begin) -
                               (run->load_here ? 0 : run_load_host(run)->clock_offset_ns));
        drop_line(output);
    } else if (!run->load.pid) {
        result = load_end_error(run, status, err);
    } else {
        result = error_set(err, ERROR_FAILED, "the load does not begin within %.0f s; see %s",
                           patience_s, run->load_log);
    }
    json_decref(line);
    return result < 0 ? result : 0;
}

static bool has_line(const struct text_buffer *output)
{
    return output->count && memchr(output->items, '\n', output->count);
}

// Waits for the load's end while the neighbours come and go.
static int follow_load(struct run *run, uint64_t begin_ns, struct text_buffer *output, int *status,
                       struct error *err)
{
    const struct experiment_load *load = &run->experiment->load;
    uint64_t end_ns = begin_ns + load->duration_ns;
    // A method loads in rounds of a second or more, and the replies to each are waited for.
    uint64_t rounds = load->method.percentile ? load->duration_ns / SECOND_NS + 1 : 1;
    char live[256] = "";
    const double grace_s =
        END_S + (double)(rounds * load->timeout_ns) / 1e9 + requests_of(load) / END_REQUESTS_PER_S;
    uint64_t deadline_ns = end_ns + (uint64_t)(grace_s * 1e9);
    for (;;) {
        uint64_t now_ns = supervisor_now_ns(), next_ns;
        if (now_ns >= deadline_ns)
            return error_set(err, ERROR_FAILED,
                             "the load generator (process %d) does not end: %.0f s after its "
                             "schedule it still runs; see %s",
                             run->load.pid, grace_s, run->load_log);
        int result = run_update_neighbours(run, begin_ns, now_ns, &next_ns, err);
        if (result < 0)
            return result;
        run_check_neighbours(run);
        run_turn_trace(run, begin_ns, now_ns, &next_ns);
        if (take_notices(output, live, sizeof live))
            run_take_snapshot(run);
        if (now_ns < end_ns)
            progress_update(run->progress, "loading, %s%.0f s to go%s",
                            load->method.percentile ? "at most " : "",
                            (double)(end_ns - now_ns) / SECOND_NS, live);
        uint64_t wake_ns = now_ns + SECOND_NS;
        // Only notices come before the summary.
        result = supervisor_wait(&run->supervisor, &run->load, output, !has_line(output),
                                 next_ns < wake_ns ? next_ns : wake_ns, status, err);
        if (result < 0 || (result && !run->load.pid))
            return result < 0 ? result : 0;
    }
}

static int keep_load_summary(struct run *run, struct text_buffer *output, struct error *err)
{
    json_error_t where;
    char live[2];
    take_notices(output, live, sizeof live);
    json_t *document = output->count ? json_loadb(output->items, output->count, 0, &where) : NULL;
    if (!document)
        return error_set(err, ERROR_FAILED, "the load's summary cannot be read: %s; see %s",
                         output->count ? where.text : "there is none", run->load_log);
    const char *lack = json_string_value(json_object_get(document, "no_kernel_stamps"));
    if (lack)
        run_warn(run, "load: no kernel stamps: %s", lack);
    const char *verdict = json_string_value(json_object_get(document, "verdict"));
    const char *doubt = json_string_value(json_array_get(json_object_get(document, "reasons"), 0));
    if (verdict && strcmp(verdict, "n/a") == 0)
        run_warn(run, "the load is inconclusive: %s", doubt ? doubt : "it does not say why");
    int result = run_folder_write_json(run->folder, LOAD_SUMMARY, document, err);
    json_decref(document);
    return result;
}

// The load of a run that cannot go on, because the server or the capture is gone: it is told to
// end, and what it measured until then is kept.
static void salvage_load(struct run *run, struct text_buffer *output)
{
    struct error ignored;
    int status;
    if (run->load.pid <= 0 || run->supervisor.interrupted)
        return;
    run->supervisor.watched_count = 0; // what is gone is known
    kill(run->load.pid, SIGTERM);
    uint64_t deadline_ns = supervisor_now_ns() + SALVAGE_S * SECOND_NS;
    if (supervisor_wait(&run->supervisor, &run->load, output, false, deadline_ns, &status,
                        &ignored) > 0 &&
        keep_load_summary(run, output, &ignored) == 0)
        run_warn(run, "what the load measured until then is in client/load.json, and what was "
                      "captured in server; `taillight analyze` takes both");
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

int run_load(struct run *run, struct error *err)
{
    const struct experiment_load *load = &run->experiment->load;
    struct text_buffer output = {0};
    char duration[40];
    struct core_times cpu = {0};
    struct error ignored;
    uint64_t begin_ns = 0;
    int status = 0;
    progress_phase(run->progress, "loading %s%s at %.10g %srequests/s",
                   load->method.percentile ? "at most " : "",
                   units_format_ns((double)load->duration_ns, duration, sizeof duration),
                   load->rate, run->experiment->workload.fanout > 1 ? "logical " : "");
    int result = start_load(run, err);
    if (result == 0 && run->log.dry)
        return run_update_neighbours(run, 0, load->duration_ns, &begin_ns, err);
    if (result == 0)
        result = wait_begin(run, &output, &begin_ns, err);
    if (result == 0 && !run_server_host(run)->kind->is_elsewhere &&
        !core_times_read(&run_server_host(run)->plan->cores, &cpu))
        cpu.cores = 0;
    if (result == 0)
        result = follow_load(run, begin_ns, &output, &status, err);
    if (result == 0)
        note_server_cpu(run, &cpu);
    if (result < 0 && begin_ns)
        salvage_load(run, &output);
    run_stop_neighbours(run, result == 0);
    const bool inconclusive = WIFEXITED(status) && WEXITSTATUS(status) == ERROR_INCONCLUSIVE;
    if (result == 0 && status != 0 && !inconclusive) {
        keep_load_summary(run, &output, &ignored); // it says what it measured whatever failed then
        result = load_end_error(run, status, err);
    }
    if (result == 0)
        result = keep_load_summary(run, &output, err);
    array_free(&output);
    return result;
}
