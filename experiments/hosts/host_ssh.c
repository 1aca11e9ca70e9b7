// SPDX-License-Identifier: MIT
//
// A host that is another machine, through the user's own OpenSSH: what
// experiments/remote/far_host.h does, as one of the kinds of hosts.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/hosts/host.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/remote/far_host.h"
#include "experiments/remote/link_file.h"

_Static_assert(sizeof((struct host *)0)->agent_place > sizeof "link=" + FAR_PATH_BYTES,
               "a link's file fits");

static int check_options(const struct experiment_host *plan, size_t *entry, struct error *err)
{
    for (*entry = 0; *entry + 1 < plan->ssh_options.count; ++*entry) {
        const char *option = plan->ssh_options.items[*entry];
        if (!isalpha((unsigned char)option[0]) || !strpbrk(option, "= "))
            return error_set(err, ERROR_INPUT,
                             "ssh_options: `%s` is not one as in ssh_config(5): \"Port=2222\"",
                             option);
    }
    return 0;
}

static int ssh_check(const struct experiment_host *plan, const char **key, size_t *entry,
                     struct error *err)
{
    if (!plan->address)
        return error_set(err, ERROR_INPUT,
                         "a host of kind ssh needs `address: user@host`, as ssh takes it");
    *key = "address";
    if (!link_file_address_is_plain(plan->address))
        return error_set(err, ERROR_INPUT, "address: `%s` is not a [user@]host as ssh takes it",
                         plan->address);
    *key = "directory";
    if (!link_file_base_is_plain(plan->directory))
        return error_set(err, ERROR_INPUT,
                         "directory: `%s` is not an absolute path of letters, digits, `.`, `_`, "
                         "`-` and `/`",
                         plan->directory);
    *key = "ssh_options";
    return check_options(plan, entry, err);
}

// Fills in what the other machine reports.
static void copy_far_facts(struct host *host, const struct far_host *far, const char *address)
{
    snprintf(host->address, sizeof host->address, "%s", address);
    snprintf(host->directory, sizeof host->directory, "%s", far->directory);
    snprintf(host->agent_place, sizeof host->agent_place, "link=%s", far->link_file);
    snprintf(host->what, sizeof host->what, "%s", far->what);
    host->is_root = far->is_root;
    host->stale_journals = far->stale_journals;
    host->helpers = far->helpers;
    host->clock_offset_ns = far->clock_offset_ns;
}

static void ssh_end(struct host *host)
{
    far_host_end(host->state);
    free(host->state);
    host->state = NULL;
}

static int ssh_start(struct host *host, size_t number, const struct run_folder *folder,
                     struct command_log *log, struct error *err)
{
    char name[100], described[2000];
    struct far_host *far = host->state = calloc(1, sizeof *far);
    (void)number;
    if (!far)
        return error_set(err, ERROR_FAILED, "out of memory");
    if (log->dry) {
        far_host_pretend(far, host->plan);
        copy_far_facts(host, far, "ADDRESS");
        command_log_write(log, host->plan->name,
                          "copy this program there, into %s, and start a keeper, through: %s",
                          host->directory,
                          far_host_describe(host->plan, described, sizeof described));
        return 0;
    }
    snprintf(name, sizeof name, "logs/ssh-%s.log", host->plan->name);
    run_folder_path(folder, name, host->log_path);
    int result = far_host_start(far, &host->keeper, host->plan, host->log_path, err);
    if (result < 0) {
        free(far);
        host->state = NULL;
        return result;
    }
    copy_far_facts(host, far, far->address);
    command_log_write(log, host->plan->name, "ssh %s: Linux %s, address %s, directory %s",
                      host->plan->address, far->kernel, host->address, host->directory);
    return 0;
}

static int ssh_start_process(const struct host *host, const char *const *argv,
                             const struct process_place *place, struct process *process,
                             struct error *err)
{
    const char *variables[HOST_VARIABLES + 1];
    struct process_place marked = *place;
    marked.environment = host_environment(host, place, variables);
    return far_host_process(host->state, argv, &marked, process, err);
}

static int ssh_find_program(const struct host *host, const char *name, char path[RUN_PATH_BYTES],
                            struct error *err)
{
    char far[FAR_PATH_BYTES];
    (void)err;
    snprintf(path, RUN_PATH_BYTES, "%s", far_host_path(host->state, name, far));
    return 0;
}

static int ssh_start_copy(const struct host *host, bool to_here, const char *there,
                          const char *here, enum far_part part, struct process *process,
                          struct error *err)
{
    const struct process_place place = {.log_path = host->log_path};
    return to_here ? far_host_fetch(host->state, there, here, part, &place, process, err)
                   : far_host_send(host->state, here, there, &place, process, err);
}

static void ssh_add_facts(const struct host *host, json_t *document)
{
    const struct far_host *far = host->state;
    json_object_update_new(
        document, json_pack("{s:s, s:s, s:s, s:s, s:{s:I, s:I}}", "ssh", host->plan->address,
                            "directory", far->directory, "boot_id", far->boot_id, "kernel",
                            far->kernel, "monotonic", "offset_ns", (json_int_t)far->clock_offset_ns,
                            "bound_ns", (json_int_t)far->clock_bound_ns));
}

const struct host_kind host_ssh = {
    .name = "ssh",
    .help = "another machine, through the user's own OpenSSH",
    .keys = (const char *const[]){"address", "nic", "directory", "ssh_config", "ssh_options",
                                  "silence", NULL},
    .is_elsewhere = true,
    .check = ssh_check,
    .start = ssh_start,
    .join = host_needs_no_joining,
    .start_process = ssh_start_process,
    .find_program = ssh_find_program,
    .end = ssh_end,
    .start_copy = ssh_start_copy,
    .add_facts = ssh_add_facts,
};
