// SPDX-License-Identifier: MIT
//
// The phases around the load in which packets are stamped where they pass interfaces: `taillight
// capsule` on the server's machine, with the namespaces of the hosts that have hops.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/hosts/host_kind.h"
#include "experiments/run/run_phases.h"

enum { HOPS_GRACE_S = 120 }; // to sort and write their records

static const char what[] = "the stamping of packets";

static void add_hops(const struct run *run, struct command_line *line)
{
    const struct experiment_hop_array *hops = &run->experiment->capsule.hops;
    for (size_t i = 0; i < hops->count; i++) {
        const struct host *host = &run->hosts.items[hops->items[i].host];
        if (host->netns[0])
            command_line_add_option(line, "--hop", "%s@%s=%s", hops->items[i].where, host->netns,
                                    host->plan->name);
        else
            command_line_add_option(line, "--hop", "%s", hops->items[i].where);
    }
}

int run_start_hops(struct run *run, struct error *err)
{
    const struct experiment *experiment = run->experiment;
    const struct experiment_capsule *capsule = &experiment->capsule;
    struct command_line line = {.failed = false};
    if (capsule->hops.count == 0)
        return 0;
    progress_phase(run->progress, "attaching %zu hops", capsule->spec_count);
    run_folder_path(run->folder, "logs/capsule.log", run->hops_log);
    command_line_add_list(&line, (const char *const[]){"taillight", "capsule", NULL});
    add_hops(run, &line);
    if (capsule->filter)
        command_line_add_option(&line, "--filter", "%s", capsule->filter);
    else
        command_line_add_option(&line, "--filter", "tcp port %u",
                                experiment->servers.items[experiment->load.to].port);
    command_line_add_option(&line, "--sample", "%s", capsule->sample);
    if (capsule->carry)
        command_line_add(&line, "--carry");
    command_line_add_list(
        &line, (const char *const[]){"--out", run->server_dir, "--announce", "--quiet", NULL});
    int result = run_start_command(run, run_server_host(run), &line, true, NULL, run->hops_log,
                                   NULL, &run->hops, err);
    if (result < 0 || run->log.dry)
        return result;
    result = run_wait_ready(run, run_server_host(run), &run->hops, what, run->hops_log, err);
    if (result == 0)
        supervisor_watch(&run->supervisor, &run->hops, what, run->hops_log);
    return result;
}

// That no packet passed says something of the hops, and nothing against the run.
int run_stop_hops(struct run *run, struct error *err)
{
    int status = 0;
    if (run->hops.pid <= 0)
        return 0;
    progress_phase(run->progress, "writing when packets passed");
    supervisor_unwatch(&run->supervisor, &run->hops);
    close(run->hops.input); // the end of its input makes it stop
    run->hops.input = -1;
    int result = supervisor_wait(&run->supervisor, &run->hops, NULL, false,
                                 supervisor_now_ns() + HOPS_GRACE_S * SECOND_NS, &status, err);
    if (result < 0)
        return result;
    if (result == 0)
        return error_set(err, ERROR_FAILED, "%s does not end in %d s; see %s", what, HOPS_GRACE_S,
                         run->hops_log);
    if (status == 0)
        return 0;
    supervisor_end_error(err, what, status, run->hops_log);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != ERROR_INCONCLUSIVE)
        return -(int)err->kind;
    run_warn(run, "%s", err->text);
    return 0;
}
