// SPDX-License-Identifier: MIT
//
// The files of a run: those that its folder has from the start, those that other machines get, and
// those that come back from there.
//
// The files that a workload names (a recorded schedule, tables of values) are on this machine, but
// requests may be drawn on hosts behind ssh. Then the files are copied into the run's folder and
// named after their contents, workload/<sum>-<name>, and the workload names the copies, relative to
// that folder. Each such host gets copies, too, so that the same text is right both in the run's
// folder and in the run's directory there.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/run/run_analysis.h"
#include "base/input_file.h"
#include "base/new_file.h"
#include "experiments/common/copy_file.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/plan/experiment.h"
#include "experiments/run/run_phases.h"
#include "workloads/workload.h"

enum { SUM_TIMEOUT_MS = 60000, SEND_TIMEOUT_S = 600, NAME_BYTES = 100 };

// workload/<the first 16 digits of its SHA-256>-<its own name, if that is plain>
static int choose_name(const char *path, char name[NAME_BYTES], struct error *err)
{
    char sums[5000];
    const char *const argv[] = {"sha256sum", "--", path, NULL};
    if (access(path, R_OK) < 0)
        return error_set_errno(err, ERROR_INPUT, "cannot read the workload's file %s", path);
    int result = process_run(argv, NULL, SUM_TIMEOUT_MS, sums, sizeof sums, err);
    if (result < 0)
        return error_prefix(err, "the workload's file %s", path);
    const char *sum = sums + (*sums == '\\'); // sha256sum marks an unusual name with a backslash
    const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
    bool plain = strlen(own) < 60 && own[strspn(own, "abcdefghijklmnopqrstuvwxyz0123456789"
                                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ._-")] == '\0';
    if (strspn(sum, "0123456789abcdef") != 64)
        return error_set(err, ERROR_FAILED, "sha256sum says: %.80s", sums);
    snprintf(name, NAME_BYTES, "workload/%.16s%s%s", sum, plain ? "-" : "", plain ? own : "");
    return 0;
}

// A workload as the load generator reads it. names: of its files, instead of its own; NULL: those.
static int write_workload(const struct run_folder *folder, const char *client,
                          const struct workload *workload, const char *const *names,
                          struct error *err)
{
    char name[NAME_BYTES];
    char *yaml = names ? workload_to_yaml_with(workload, names) : workload_to_yaml(workload);
    if (!yaml)
        return error_set(err, ERROR_FAILED, "out of memory");
    snprintf(name, sizeof name, "%s/workload.yaml", client);
    int result = run_folder_write(folder, name, yaml, strlen(yaml), err);
    free(yaml);
    return result;
}

// Copies the files that a workload names into the run's folder, unless another has named them, and
// makes the workload name the copies.
static int gather_files_of(struct run *run, const struct loader *loader, struct error *err)
{
    const char *paths[WORKLOAD_FILES_MAX], *names[WORKLOAD_FILES_MAX];
    char text[WORKLOAD_FILES_MAX][NAME_BYTES], path[LOG_PATH_BYTES];
    size_t count = workload_files(&loader->plan->workload, paths);
    int result = 0;
    run->files_inside |= count > 0;
    if (count == 0 || run->log.dry)
        return 0;
    if (mkdir(run_folder_path(run->folder, "workload", path), 0755) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", path);
    for (size_t i = 0; i < count && result == 0; i++) {
        result = choose_name(paths[i], text[i], err);
        if (result == 0 && access(run_folder_path(run->folder, text[i], path), F_OK) < 0)
            result = copy_file(paths[i], path, err);
        names[i] = text[i];
    }
    return result == 0
               ? write_workload(run->folder, loader->folder, &loader->plan->workload, names, err)
               : result;
}

static int gather_files(struct run *run, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < run->loader_count && result == 0; i++)
        result = gather_files_of(run, &run->loaders[i], err);
    return result;
}

// --- to other machines, and back -----------------------------------------------------------------

static int send_folder(struct run *run, struct host *host, const char *there, const char *here,
                       struct error *err)
{
    struct process process;
    command_log_write(&run->log, host->plan->name, "send to %s", there);
    if (run->log.dry)
        return 0;
    int result = host->kind->start_copy(host, false, there, here, FAR_PART_ALL, &process, err);
    if (result < 0)
        return result;
    result = supervisor_finish(&run->supervisor, &process, "sending files", host->log_path,
                               SEND_TIMEOUT_S, err);
    process_stop(&process, 0);
    return result;
}

// Chooses where processes on that host write the files that belong into the run's folder `name`.
// make: by which that host's keeper makes it.
static int choose_directory(struct run *run, struct host *host, const char *name,
                            int (*make)(struct keeper *, const char *, struct error *),
                            char path[LOG_PATH_BYTES], struct error *err)
{
    run_folder_path(run->folder, name, path);
    if (!host->kind->is_elsewhere)
        return 0;
    snprintf(path, LOG_PATH_BYTES, "%s/%s", host->directory, name);
    return make(&host->keeper, path, err);
}

// Sends the workload's files to every host behind ssh on which requests are drawn.
static int send_files(struct run *run, struct error *err)
{
    char here[LOG_PATH_BYTES], there[LOG_PATH_BYTES];
    const struct experiment_agent_array *agents = &run->experiment->load.agents;
    int result = 0;
    run_folder_path(run->folder, "workload", here);
    for (size_t i = 0; i < run->hosts.count && result == 0; i++) {
        struct host *host = &run->hosts.items[i];
        bool draws = host == run_load_host(run);
        for (size_t j = 0; j < agents->count; j++)
            draws |= agents->items[j].host == i;
        if (!draws || !host->kind->is_elsewhere)
            continue;
        result = choose_directory(run, host, "workload", keeper_make_directory, there, err);
        if (result == 0)
            result = send_folder(run, host, there, here, err);
    }
    return result;
}

// Where each load writes: the first into the client's directory, another into one of its own.
static int choose_load_directories(struct run *run, struct error *err)
{
    char here[LOG_PATH_BYTES];
    int result = 0;
    memcpy(run->loaders[0].directory, run->load_dir, sizeof run->load_dir);
    for (size_t i = 1; i < run->loader_count && result == 0; i++) {
        struct loader *loader = &run->loaders[i];
        struct host *host = &run->hosts.items[loader->plan->from];
        result = choose_directory(run, host, loader->folder, keeper_make_results, loader->directory,
                                  err);
        if (result == 0 && host->kind->is_elsewhere)
            result = send_folder(run, host, loader->directory,
                                 run_folder_path(run->folder, loader->folder, here), err);
    }
    return result;
}

int run_choose_directories(struct run *run, struct error *err)
{
    char here[LOG_PATH_BYTES];
    struct host *load = run_load_host(run);
    const struct experiment_agent_array *agents = &run->experiment->load.agents;
    for (size_t i = 0; i < agents->count; i++)
        run->load_here |= run->hosts.items[agents->items[i].host].kind->is_elsewhere;
    int result = load->kind->is_elsewhere || run->load_here ? gather_files(run, err) : 0;
    if (result == 0)
        result = choose_directory(run, run_server_host(run), "server", keeper_make_results,
                                  run->server_dir, err);
    if (result == 0)
        result = choose_directory(run, load, "client", keeper_make_results, run->client_dir, err);
    run_folder_path(run->folder, "client", here);
    memcpy(run->load_dir, run->load_here ? here : run->client_dir, sizeof run->load_dir);
    if (result == 0 && load->kind->is_elsewhere)
        result = send_folder(run, load, run->client_dir, here, err);
    if (result == 0)
        result = choose_load_directories(run, err);
    return result == 0 && run->files_inside ? send_files(run, err) : result;
}

// --- what is in the folder from the start --------------------------------------------------------

// Writes the document that the experiment was resolved from, where its file is not all of it.
static int write_derived(const struct run_folder *folder, const struct experiment *experiment,
                         struct error *err)
{
    char *text, *whole = NULL;
    size_t bytes;
    int result = document_write(experiment->document, &text, &bytes, err);
    if (result < 0)
        return result;
    int length =
        asprintf(&whole, "# What %s comes to%s%s\n%s", experiment->path,
                 experiment->configuration[0] ? ": " : "", experiment->configuration, text);
    result = length < 0 ? error_set(err, ERROR_FAILED, "out of memory")
                        : run_folder_write(folder, "experiment.yaml", whole, (size_t)length, err);
    free(text);
    if (length >= 0)
        free(whole);
    return result;
}

// Copies a file of at most `most` bytes, which its reader has already checked.
static int copy_input(const struct run_folder *folder, const char *name, const char *from,
                      size_t most, struct error *err)
{
    char *text = malloc(most);
    FILE *file = input_stream(from, err);
    size_t bytes = text && file ? fread(text, 1, most, file) : 0;
    int result = text && file && !ferror(file)
                     ? run_folder_write(folder, name, text, bytes, err)
                     : error_set_errno(err, ERROR_FAILED, "cannot read %s", from);
    if (file)
        fclose(file);
    free(text);
    return result;
}

static int make_folder(const struct run_folder *folder, const char *name, struct error *err)
{
    char path[RUN_PATH_BYTES + 128];
    return mkdir(run_folder_path(folder, name, path), 0755) < 0
               ? error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", path)
               : 0;
}

int run_write_inputs(const struct run_folder *folder, const struct experiment *experiment,
                     struct error *err)
{
    static const char *const inside[] = {"server", "logs"};
    int result = make_folder(folder, inside[0], err);
    if (result == 0)
        result = make_folder(folder, inside[1], err);
    if (result == 0)
        result = experiment->derived
                     ? write_derived(folder, experiment, err)
                     : copy_input(folder, "experiment.yaml", experiment->path, 1 << 20, err);
    if (result == 0 && experiment->categories[0])
        result = copy_input(folder, RUN_CATEGORIES_FILE, experiment->categories, 16 << 20, err);
    for (size_t i = 0; i < experiment_load_count(experiment) && result == 0; i++) {
        const struct experiment_load *load = experiment_load_at(experiment, i);
        char client[LOAD_FOLDER_BYTES];
        result = make_folder(folder, run_load_folder(i ? load->name : NULL, client), err);
        if (result == 0)
            result = write_workload(folder, client, &load->workload, NULL, err);
    }
    return result;
}
