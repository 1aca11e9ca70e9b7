// SPDX-License-Identifier: MIT
//
// What comes back from other machines when a run is over: first the logs, without which there is no
// result, then a recording of perf's with the code that ran, which may be gigabytes and whose loss
// costs the functions only. The link packs what goes over it.
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "experiments/hosts/host_kind.h"
#include "experiments/run/run_phases.h"

// A copy has as long as it needs while bytes keep coming; a link that is down is noticed sooner.
enum { STALLED_S = 60 };

// Bytes below a folder.
static uint64_t folder_bytes(const char *path)
{
    char *const roots[] = {(char *)(uintptr_t)path, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    uint64_t bytes = 0;
    for (FTSENT *entry; tree && (entry = fts_read(tree));)
        if (entry->fts_info == FTS_F)
            bytes += (uint64_t)entry->fts_statp->st_size;
    if (tree)
        fts_close(tree);
    return bytes;
}

// Waits for a copy into `here`, which goes on as long as it brings something.
static int wait_copy(struct run *run, struct host *host, struct process *process, const char *here,
                     struct error *err)
{
    uint64_t before = folder_bytes(here), seen = before, changed_ns = supervisor_now_ns();
    for (;;) {
        int status = 0;
        uint64_t now_ns = supervisor_now_ns();
        int result = supervisor_wait(&run->supervisor, process, NULL, false, now_ns + SECOND_NS,
                                     &status, err);
        if (result < 0 || (result > 0 && status == 0))
            return result < 0 ? result : 0;
        if (result > 0)
            return supervisor_end_error(err, "fetching the logs", status, host->log_path);
        uint64_t bytes = folder_bytes(here);
        if (bytes != seen)
            changed_ns = now_ns;
        seen = bytes;
        if (now_ns - changed_ns > STALLED_S * SECOND_NS)
            return error_set(err, ERROR_FAILED,
                             "nothing more has come from host %s for %d s, after %llu MiB; see %s",
                             host->plan->name, STALLED_S,
                             (unsigned long long)(bytes - before) >> 20, host->log_path);
        progress_update(run->progress, "fetching, %llu MiB so far",
                        (unsigned long long)(bytes - before) >> 20);
    }
}

static int fetch(struct run *run, struct host *host, const char *there, const char *here,
                 enum far_part part, struct error *err)
{
    struct process process;
    command_log_write(&run->log, host->plan->name, "fetch %s%s", there,
                      part == FAR_PART_RECORDING ? ": the recording" : "");
    if (run->log.dry)
        return 0;
    int result = host->kind->start_copy(host, true, there, here, part, &process, err);
    if (result < 0)
        return result;
    result = wait_copy(run, host, &process, here, err);
    process_stop(&process, 0);
    return result;
}

// Whether a backend left a recording of perf's there.
static bool has_recording(const struct run_folder *folder)
{
    struct error ignored;
    json_t *capture = run_folder_read_json(folder, "server/capture.json", &ignored), *part;
    const char *name;
    bool found = false;
    json_object_foreach(capture, name, part) found |=
        json_is_string(json_object_get(part, "perf_data"));
    json_decref(capture);
    return found;
}

static int fetch_server(struct run *run, struct error *err)
{
    struct host *host = run_server_host(run);
    char here[LOG_PATH_BYTES];
    struct error problem;
    progress_phase(run->progress, "fetching what host %s wrote", host->plan->name);
    run_folder_path(run->folder, "server", here);
    int result = fetch(run, host, run->server_dir, here, FAR_PART_LOGS, err);
    if (result < 0 || run->log.dry || !has_recording(run->folder))
        return result;
    progress_phase(run->progress, "fetching the recording of host %s", host->plan->name);
    result = fetch(run, host, run->server_dir, here, FAR_PART_RECORDING, &problem);
    if (result < 0 && supervisor_check(&run->supervisor, err) < 0)
        return -(int)err->kind; // a person wants it to end
    if (result < 0)
        run_warn(run, "the recording is not here, or not whole: %s", problem.text);
    return 0;
}

int run_fetch_loads(struct run *run, struct error *err)
{
    char here[LOG_PATH_BYTES];
    struct host *load = run_load_host(run);
    int result = 0;
    if (run->load_here || !load->kind->is_elsewhere)
        return 0;
    progress_phase(run->progress, "fetching what host %s wrote", load->plan->name);
    for (size_t i = 0; i < run->loader_count && result == 0; i++)
        result =
            fetch(run, load, run->loaders[i].directory,
                  run_folder_path(run->folder, run->loaders[i].folder, here), FAR_PART_ALL, err);
    return result;
}

int run_fetch(struct run *run, struct error *err)
{
    int result = run_server_host(run)->kind->is_elsewhere ? fetch_server(run, err) : 0;
    return result < 0 ? result : run_fetch_loads(run, err);
}
