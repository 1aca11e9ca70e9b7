// SPDX-License-Identifier: MIT
//
// The phases around the load in which packets are stamped where they pass interfaces: `taillight
// capsule` on the server's machine, with the namespaces of the hosts that have hops, and on the
// load's, where that is another one and has hops. Packets that carry their stamps over both begin
// to when the hops of both are attached, and each end of their way records the stamps of all.
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/run/run_phases.h"

enum { HOPS_GRACE_S = 120 }; // to sort and write their records

static const char *const whats[STAMPED_MACHINES] = {
    [STAMPED_SERVER] = "the stamping of packets",
    [STAMPED_CLIENT] = "the stamping of packets on the load's machine",
};

static struct host *host_of(struct run *run, enum stamped_machine machine)
{
    return machine == STAMPED_SERVER ? run_server_host(run) : run_load_host(run);
}

// Whether packets carry their stamps from one machine to the other.
static bool carries_over(const struct experiment_capsule *capsule)
{
    size_t at_client = 0;
    for (size_t i = 0; i < capsule->hops.count; i++)
        at_client += capsule->hops.items[i].at_client;
    return capsule->carry && at_client && at_client < capsule->hops.count;
}

// Gives a machine its hops; where packets carry over both, all of the way, as it is seen from
// there. Returns how many are its own.
static size_t add_hops(struct run *run, enum stamped_machine machine, struct command_line *line)
{
    const struct experiment_capsule *capsule = &run->experiment->capsule;
    size_t count = 0;
    for (size_t i = 0; i < capsule->hops.count; i++) {
        const struct experiment_hop *hop = &capsule->hops.items[i];
        const struct host *host = &run->hosts.items[hop->host];
        enum stamped_machine its = hop->at_client ? STAMPED_CLIENT : STAMPED_SERVER;
        char text[2 * HOP_NAME_BYTES];
        if (its != machine && !carries_over(capsule))
            continue;
        snprintf(text, sizeof text, "%s", hop->where);
        if (host->netns[0])
            text_append(text, sizeof text, "@%s=%s", host->netns, host->plan->name);
        if (its != machine)
            text_append(text, sizeof text, "@ssh:%s", host_of(run, its)->plan->name);
        command_line_add_option(line, "--hop", "%s", text);
        count += its == machine;
    }
    return count;
}

// Numbers that both machines are given.
struct shared_numbers {
    char flow_key[24]; // they sample the same packets if they know them by the same hashes
    char part[24];     // by which the one knows trailers of the other
};

static int start_hops(struct run *run, enum stamped_machine machine,
                      const struct shared_numbers *numbers, struct error *err)
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
        command_line_add_option(&line, "--flow-key", "%s", numbers->flow_key);
    if (carries_over(capsule))
        command_line_add_option(&line, "--part", "%s", numbers->part);
    command_line_add_list(
        &line, (const char *const[]){"--out",
                                     machine == STAMPED_SERVER ? run->server_dir : run->client_dir,
                                     "--announce", "--quiet", NULL});
    const struct run_command command = {.line = &line, .input = true, .log_path = hops->log};
    int result = run_start_command(run, host, &command, &hops->process, err);
    if (result < 0 || run->log.dry)
        return result;
    json_t *ready = NULL;
    result =
        run_wait_word(run, host, &hops->process, "ready", whats[machine], hops->log, &ready, err);
    hops->room_bytes = (uint32_t)json_integer_value(json_object_get(ready, "room_bytes"));
    const char *holders = json_string_value(json_object_get(ready, "holder_cores"));
    if (result == 0 && holders)
        result = units_parse_cores(holders, &hops->holders, err);
    json_decref(ready);
    if (result == 0)
        supervisor_watch(&run->supervisor, &hops->process, whats[machine], hops->log);
    return result;
}

static int choose_numbers(const struct run *run, struct shared_numbers *numbers, struct error *err)
{
    uint64_t random[2];
    *numbers = (struct shared_numbers){"KEY", "PART"}; // of a dry run
    if (run->log.dry)
        return 0;
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return error_set_errno(err, ERROR_FAILED, "no random number");
    snprintf(numbers->flow_key, sizeof numbers->flow_key, "0x%016llx",
             (unsigned long long)random[0] | 1); // 0 would be another one on each
    snprintf(numbers->part, sizeof numbers->part, "0x%016llx", (unsigned long long)random[1] | 1);
    return 0;
}

static int begin_carrying(struct run *run, enum stamped_machine machine, uint32_t room_bytes,
                          struct error *err)
{
    struct hop_stamping *hops = &run->hops[machine];
    if (dprintf(hops->process.input, "begin %u\n", room_bytes) < 0)
        return error_set_errno(err, ERROR_FAILED, "%s cannot be told to begin; see %s",
                               whats[machine], hops->log);
    return run_wait_word(run, host_of(run, machine), &hops->process, "begun", whats[machine],
                         hops->log, NULL, err);
}

// All hops are attached: packets may be as long as both machines have room for.
static int begin_on_both(struct run *run, struct error *err)
{
    uint32_t room_bytes = UINT16_MAX;
    int result = 0;
    for (int i = 0; i < STAMPED_MACHINES; i++) {
        if (run->hops[i].room_bytes == 0)
            return error_set(err, ERROR_FAILED, "%s does not say how long packets may be; see %s",
                             whats[i], run->hops[i].log);
        if (run->hops[i].room_bytes < room_bytes)
            room_bytes = run->hops[i].room_bytes;
    }
    for (int i = 0; i < STAMPED_MACHINES && result == 0; i++)
        result = begin_carrying(run, (enum stamped_machine)i, room_bytes, err);
    return result;
}

int run_start_hops(struct run *run, struct error *err)
{
    const struct experiment_capsule *capsule = &run->experiment->capsule;
    struct shared_numbers numbers;
    if (capsule->hops.count == 0)
        return 0;
    progress_phase(run->progress, "attaching %zu hops", capsule->spec_count);
    int result = choose_numbers(run, &numbers, err);
    for (int i = 0; i < STAMPED_MACHINES && result == 0; i++)
        result = start_hops(run, (enum stamped_machine)i, &numbers, err);
    return result == 0 && carries_over(capsule) && !run->log.dry ? begin_on_both(run, err) : result;
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
    // None gets a trailer any more before the first of the ends goes. Whoever is dead by now is
    // found to be below.
    for (int i = 0; i < STAMPED_MACHINES && carries_over(&run->experiment->capsule); i++)
        if (run->hops[i].process.pid > 0)
            dprintf(run->hops[i].process.input, "begin no more\n");
    for (int i = 0; i < STAMPED_MACHINES && result == 0; i++)
        result = stop_hops(run, (enum stamped_machine)i, err);
    return result;
}
