// SPDX-License-Identifier: MIT
//
// A host that is this machine as it is, on 127.0.0.1, and needs only a keeper. Also the operations
// that all hosts on this machine share.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "experiments/common/program_path.h"
#include "experiments/hosts/host.h"
#include "experiments/hosts/host_kind.h"

int host_needs_no_check(const struct experiment_host *plan, const char **key, size_t *entry,
                        struct error *err)
{
    (void)plan;
    (void)key;
    (void)entry;
    (void)err;
    return 0;
}

int host_needs_no_joining(struct host_array *hosts, struct command_log *log, struct error *err)
{
    (void)hosts;
    (void)log;
    (void)err;
    return 0;
}

void host_needs_no_end(struct host *host)
{
    (void)host;
}

int host_start_here(struct host *host, bool isolated, struct error *err)
{
    host->is_root = geteuid() == 0;
    snprintf(host->address, sizeof host->address, "%s", "127.0.0.1");
    if (!host->keeper.dry)
        return keeper_start(&host->keeper, isolated, err);
    host->keeper = (struct keeper){.channel = -1, .isolated = isolated, .dry = true};
    return 0;
}

int host_start_process_here(const struct host *host, const char *const *argv,
                            const struct process_place *place, struct process *process,
                            struct error *err)
{
    const char *variables[HOST_VARIABLES + 1];
    struct process_place marked = *place;
    marked.environment = host_environment(host, place, variables);
    return process_start(process, argv, &marked, err);
}

int host_find_program_here(const struct host *host, const char *name, char path[RUN_PATH_BYTES],
                           struct error *err)
{
    (void)host;
    return strcmp(name, "taillight") == 0 ? program_path_self(path, RUN_PATH_BYTES, err)
           : strcmp(name, "libtaillight-shim.so") == 0
               ? program_path_shim(path, RUN_PATH_BYTES, err)
               : program_path_beside(name, path, RUN_PATH_BYTES, err);
}

static int local_start(struct host *host, size_t number, const struct run_folder *folder,
                       struct command_log *log, struct error *err)
{
    (void)number;
    (void)folder;
    int result = host_start_here(host, false, err);
    if (result == 0 && log->dry)
        command_log_write(log, host->plan->name, "start a keeper, address %s", host->address);
    else if (result == 0)
        command_log_write(log, host->plan->name, "keeper is process %d, address %s",
                          host->keeper.pid, host->address);
    return result;
}

const struct host_kind host_local = {
    .name = "local",
    .help = "this machine, on 127.0.0.1",
    .keys = (const char *const[]){NULL},
    .is_alone = true,
    .check = host_needs_no_check,
    .start = local_start,
    .join = host_needs_no_joining,
    .start_process = host_start_process_here,
    .find_program = host_find_program_here,
    .end = host_needs_no_end,
};
