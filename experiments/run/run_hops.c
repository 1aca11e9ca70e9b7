// SPDX-License-Identifier: MIT
//
// The phases around the load in which packets are stamped where they pass interfaces: `taillight
// capsule` on the server's machine, with the namespaces of the hosts that have hops, and on the
// load's, where that is another one and has hops.
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/hosts/host_kind.h"
#include "experiments/run/run_phases.h"

enum { HOPS_GRACE_S = 120 }; // to sort and write their records

static const char *const whats[STAMPED_MACHINES] = {
    [STAMPED_SERVER] = "the stamping of packets",
    [STAMPED_CLIENT] = "the stamping of packets on the load's machine",
};

static size_t add_hops(const struct run *run, enum stamped_machine machine,
                       struct command_line *line)
{
    const struct experiment_hop_array *hops = &run->experiment->capsule.hops;
    size_t count = 0;
    for (size_t i = 0; i < hops->count; i++) {
        const struct host *host = &run->hosts.items[hops->items[i].host];
        if (hops->items[i].at_client != (machine == STAMPED_CLIENT))
            continue;
        if (host->netns[0])
            command_line_add_option(line, "--hop", "%s@%s=%s", hops->items[i].where, host->netns,
                                    host->plan->name);
        else
            command_line_add_option(line, "--hop", "%s", hops->items[i].where);
        count++;
    }
    return count;
}

static struct host *host_of(struct run *run, enum stamped_machine machine)
{
    return machine == STAMPED_SERVER ? run_server_host(run) : run_load_host(run);
}

static int start_hops(struct run *run, enum stamped_machine machine, const char *flow_key,
                      struct error *err)
{
    const struct experiment *experiment = run->experiment;
    const struct experiment_server *server = &experiment->servers.items[experiment->load.to];
    const struct experiment_capsule *capsule = &experiment->capsule;
    struct hop_stamping *hops = &run->hops[machine];
    struct host *host = host_of(run, machine);
    struct command_line line = {.failed = false};
    run_folder_path(run->folder,
                    machine == STAMPED_SERVER ? "logs/capsule.log" : "logs/client-capsule.log",
                    hops->log);
    command_line_add_list(&line, (const char *const[]){"taillight", "capsule", NULL});
    if (add_hops(run, machine, &line) == 0) {
        command_line_free(&line);
        return 0;
    }
    if (capsule->filter)
        command_line_add_option(&line, "--filter", "%s", capsule->filter);
    else
        command_line_add_option(&line, "--filter", "%s port %u", server->over_udp ? "udp" : "tcp",
                                server->port);
    command_line_add_option(&line, "--sample", "%s", capsule->sample);
    if (capsule->carry)
        command_line_add(&line, "--carry");
    if (capsule->is_divided)
        command_line_add_option(&line, "--flow-key", "%s", flow_key);
    command_line_add_list(
        &line, (const char *const[]){"--out",
                                     machine == STAMPED_SERVER ? run->server_dir : run->client_dir,
                                     "--announce", "--quiet", NULL});
    const struct run_command command = {.line = &line, .input = true, .log_path = hops->log};
    int result = run_start_command(run, host, &command, &hops->process, err);
    if (result < 0 || run->log.dry)
        return result;
    result = run_wait_ready(run, host, &hops->process, whats[machine], hops->log, err);
    if (result == 0)
        supervisor_watch(&run->supervisor, &hops->process, whats[machine], hops->log);
    return result;
}

// Machines sample the same packets if they know them by the same hashes.
static int choose_flow_key(const struct run *run, char key[24], struct error *err)
{
    uint64_t random;
    snprintf(key, 24, "KEY"); // of a dry run
    if (run->log.dry)
        return 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return error_set_errno(err, ERROR_FAILED, "no random number");
    snprintf(key, 24, "0x%016llx", (unsigned long long)random);
    return 0;
}

int run_start_hops(struct run *run, struct error *err)
{
    char key[24];
    if (run->experiment->capsule.hops.count == 0)
        return 0;
    progress_phase(run->progress, "attaching %zu hops", run->experiment->capsule.spec_count);
    int result = choose_flow_key(run, key, err);
    for (int i = 0; i < STAMPED_MACHINES && result == 0; i++)
        result = start_hops(run, (enum stamped_machine)i, key, err);
    return result;
}

// That no packet passed says something of the hops, and nothing against the run.
static int stop_hops(struct run *run, enum stamped_machine machine, struct error *err)
{
    struct hop_stamping *hops = &run->hops[machine];
    int status = 0;
    if (hops->process.pid <= 0)
        return 0;
    supervisor_unwatch(&run->supervisor, &hops->process);
    close(hops->process.input); // the end of its input makes it stop
    hops->process.input = -1;
    int result = supervisor_wait(&run->supervisor, &hops->process, NULL, false,
                                 supervisor_now_ns() + HOPS_GRACE_S * SECOND_NS, &status, err);
    if (result < 0)
        return result;
    if (result == 0)
        return error_set(err, ERROR_FAILED, "%s does not end in %d s; see %s", whats[machine],
                         HOPS_GRACE_S, hops->log);
    if (status == 0)
        return 0;
    supervisor_end_error(err, whats[machine], status, hops->log);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != ERROR_INCONCLUSIVE)
        return -(int)err->kind;
    run_warn(run, "%s", err->text);
    return 0;
}

int run_stop_hops(struct run *run, struct error *err)
{
    int result = 0;
    if (run->experiment->capsule.hops.count)
        progress_phase(run->progress, "writing when packets passed");
    for (int i = 0; i < STAMPED_MACHINES && result == 0; i++)
        result = stop_hops(run, (enum stamped_machine)i, err);
    return result;
}
