// SPDX-License-Identifier: MIT
//
// The phases in which the server is loaded: with its dataset, then with requests while neighbours
// come and go.
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/units.h"
#include "experiments/common/core_times.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/run/run_phases.h"

enum {
    PREPARE_TIMEOUT_S = 120,
    BEGIN_TIMEOUT_S = 60,
    LOAD_GRACE_S = 60, // after the schedule and the timeout, for writing its logs
};

struct load_words {
    char server[64], workload[LOG_PATH_BYTES], samples[LOG_PATH_BYTES];
    char rate[40], connections[24], depth[24], duration[32], seed[24], timeout[32];
    char interval[32], confidence[40];
};

// directory: has the workload, and gets the samples.
static void fill_load_words(struct run *run, const char *directory, struct load_words *words)
{
    const struct experiment_load *load = &run->experiment->load;
    snprintf(words->server, sizeof words->server, "%s:%u", run_server_host(run)->address,
             run->experiment->servers.items[load->to].port);
    snprintf(words->samples, sizeof words->samples, "%s", directory);
    snprintf(words->workload, sizeof words->workload, "%.4200s/workload.yaml", directory);
    snprintf(words->rate, sizeof words->rate, "%.17g", load->rate);
    snprintf(words->connections, sizeof words->connections, "%llu",
             (unsigned long long)load->connections);
    snprintf(words->depth, sizeof words->depth, "%llu", (unsigned long long)load->depth);
    snprintf(words->duration, sizeof words->duration, "%lluns",
             (unsigned long long)load->duration_ns);
    snprintf(words->seed, sizeof words->seed, "%llu", (unsigned long long)load->seed);
    snprintf(words->interval, sizeof words->interval, "%lluns",
             (unsigned long long)load->method.interval_ns);
    snprintf(words->confidence, sizeof words->confidence, "%.17g", load->method.confidence);
    snprintf(words->timeout, sizeof words->timeout, "%lluns", (unsigned long long)load->timeout_ns);
}

// Fills in the arguments of a load on that host (NULL: here) that writes into `directory`. Returns
// its working directory, from which its workload's files are found; NULL: ours.
static const char *place_load(struct run *run, const struct host *host, const char *directory,
                              struct load_words *words)
{
    bool there = host && host->kind->is_elsewhere;
    fill_load_words(run, run->files_inside && !there ? "client" : directory, words);
    return !run->files_inside ? NULL : there ? host->directory : run->folder->path;
}

int run_prepare(struct run *run, struct error *err)
{
    struct load_words words;
    struct process process;
    const char *directory = place_load(run, run_load_host(run), run->client_dir, &words);
    const char *argv[] = {"taillight",  "load",         "--prepare", "--server", words.server,
                          "--workload", words.workload, "--quiet",   NULL};
    progress_phase(run->progress, "loading and verifying %llu keys",
                   (unsigned long long)run->experiment->workload.key_count);
    char path[LOG_PATH_BYTES];
    run_folder_path(run->folder, "logs/prepare.log", path);
    int result =
        run_start_command(run, run_load_host(run), argv, false, directory, path, &process, err);
    if (result < 0 || run->log.dry)
        return result;
    result = supervisor_finish(&run->supervisor, &process, "loading the dataset", path,
                               PREPARE_TIMEOUT_S, err);
    process_stop(&process, 0);
    return result;
}

// --- the load ------------------------------------------------------------------------------------

// "latency,name=probe,rate=1000,connections=16,threads=1,cores=0+2,netns=/proc/4711/ns/net"
static void agent_word(struct run *run, const struct experiment_agent *agent, char *word,
                       size_t word_bytes)
{
    const struct agent_spec *spec = &agent->spec;
    const struct host *host = &run->hosts.items[agent->host];
    char cores[256];
    units_format_cores(&spec->cores, cores, sizeof cores);
    for (char *comma = cores; (comma = strchr(comma, ','));)
        *comma = '+';
    snprintf(word, word_bytes, "%s,name=%s,rate=%.17g,connections=%llu,threads=%llu,cores=%s%s%s",
             agent_kind_name(spec->kind), spec->name, spec->rate,
             (unsigned long long)spec->connections, (unsigned long long)spec->threads, cores,
             host->agent_place[0] ? "," : "", host->agent_place);
}

static void add_length(const struct load_words *words, const char *percentile, const char **argv,
                       size_t *n)
{
    const char *const duration[] = {"--duration", words->duration};
    const char *const method[] = {"--target",       percentile,     "--ci",
                                  words->interval,  "--confidence", words->confidence,
                                  "--max-duration", words->duration};
    const char *const *added = percentile ? method : duration;
    size_t count = percentile ? 8 : 2;
    for (size_t i = 0; i < count; i++)
        argv[(*n)++] = added[i];
}

static int start_load(struct run *run, struct error *err)
{
    const struct experiment_agent_array *agents = &run->experiment->load.agents;
    char agent_words[AGENTS_MAX][1024];
    const char *argv[40 + 2 * AGENTS_MAX];
    size_t n = 0;
    struct load_words words;
    struct host *host = run->load_here ? NULL : run_load_host(run);
    const char *directory = place_load(run, host, run->load_dir, &words);
    const char *const fixed[] = {"taillight",     "load",
                                 "--server",      words.server,
                                 "--workload",    words.workload,
                                 "--rate",        words.rate,
                                 "--connections", words.connections,
                                 "--depth",       words.depth,
                                 "--seed",        words.seed,
                                 "--stamps",      run->experiment->load.stamps,
                                 "--timeout",     words.timeout,
                                 "--samples",     words.samples,
                                 "--announce",    "--json",
                                 "--quiet"};
    for (; n < sizeof fixed / sizeof *fixed; n++)
        argv[n] = fixed[n];
    add_length(&words, run->experiment->load.method.percentile, argv, &n);
    for (size_t i = 0; i < agents->count; i++) {
        agent_word(run, &agents->items[i], agent_words[i], sizeof agent_words[i]);
        argv[n++] = "--agent";
        argv[n++] = agent_words[i];
    }
    argv[n] = NULL;
    run_folder_path(run->folder, "logs/load.log", run->load_log);
    return run_start_command(run, host, argv, false, directory, run->load_log, &run->load, err);
}

static int load_end_error(struct run *run, int status, struct error *err)
{
    return supervisor_end_error(err, "the load generator", status, run->load_log);
}

// Reads when the load's first request is due. Everything else is timed from there.
static int wait_begin(struct run *run, struct text_buffer *output, uint64_t *begin_ns,
                      struct error *err)
{
    int status = 0;
    int result = supervisor_wait(&run->supervisor, &run->load, output, true,
                                 supervisor_now_ns() + BEGIN_TIMEOUT_S * SECOND_NS, &status, err);
    if (result < 0)
        return result;
    json_t *line = run_first_line(output), *begin = json_object_get(line, "begin_ns");
    if (json_is_integer(begin)) // by the clock of its host
        *begin_ns = (uint64_t)(json_integer_value(begin) -
                               (run->load_here ? 0 : run_load_host(run)->clock_offset_ns));
    else if (!run->load.pid)
        result = load_end_error(run, status, err);
    else
        result = error_set(err, ERROR_FAILED, "the load does not begin; see %s", run->load_log);
    json_decref(line);
    return result < 0 ? result : 0;
}

// Waits for the load's end while the neighbours come and go.
static int follow_load(struct run *run, uint64_t begin_ns, struct text_buffer *output, int *status,
                       struct error *err)
{
    const struct experiment_load *load = &run->experiment->load;
    uint64_t end_ns = begin_ns + load->duration_ns;
    // A method loads in rounds of a second or more, and the replies to each are waited for.
    uint64_t rounds = load->method.percentile ? load->duration_ns / SECOND_NS + 1 : 1;
    uint64_t deadline_ns = end_ns + rounds * load->timeout_ns + LOAD_GRACE_S * SECOND_NS;
    for (;;) {
        uint64_t now_ns = supervisor_now_ns(), next_ns;
        if (now_ns >= deadline_ns)
            return error_set(err, ERROR_FAILED, "the load does not end; see %s", run->load_log);
        int result = run_update_neighbours(run, begin_ns, now_ns, &next_ns, err);
        if (result < 0)
            return result;
        run_check_neighbours(run);
        if (now_ns < end_ns)
            progress_update(run->progress, ": %s%.0f s to go",
                            load->method.percentile ? "at most " : "",
                            (double)(end_ns - now_ns) / SECOND_NS);
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
    const char *lack = json_string_value(json_object_get(document, "no_kernel_stamps"));
    if (lack)
        run_warn(run, "load: no kernel stamps: %s", lack);
    int result = run_folder_write_json(run->folder, "client/load.json", document, err);
    json_decref(document);
    return result;
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
    char duration[40], last[400];
    struct core_times cpu = {0};
    uint64_t begin_ns = 0;
    int status = 0;
    progress_phase(run->progress, "loading %s%s at %.10g requests/s",
                   load->method.percentile ? "at most " : "",
                   units_format_ns((double)load->duration_ns, duration, sizeof duration),
                   load->rate);
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
    run_stop_neighbours(run, result == 0);
    if (result == 0 && WIFEXITED(status) && WEXITSTATUS(status) == ERROR_INCONCLUSIVE)
        run_warn(run, "load: %s", command_log_last_line(run->load_log, last, sizeof last));
    else if (result == 0 && status != 0)
        result = load_end_error(run, status, err);
    if (result == 0)
        result = keep_load_summary(run, &output, err);
    array_free(&output);
    return result;
}
