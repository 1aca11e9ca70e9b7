// SPDX-License-Identifier: MIT
#include "experiments/hosts/host.h"

#include <stdio.h>
#include <string.h>

#include <unistd.h>

#include "base/units.h"
#include "experiments/common/program_path.h"

enum { COMMAND_TIMEOUT_MS = 10000 };

struct process_place host_place(const struct host *host, const cpu_set_t *cores)
{
    cpu_set_t both;
    cores = cores ? cores : &host->plan->cores;
    CPU_AND(&both, cores, &host->cgroup_cores);
    return (struct process_place){
        .netns = host->netns[0] ? host->netns : NULL,
        .cgroup = host->cgroup[0] && CPU_EQUAL(&both, cores) ? host->cgroup : NULL,
        .cores = cores,
        .dry = host->keeper.dry};
}

struct keeper *host_machine_keeper(struct host *host, struct error *err)
{
    if (!host->keeper.isolated)
        return &host->keeper;
    if (host->keeper.dry)
        host->outside = (struct keeper){.channel = -1, .dry = true};
    else if (host->outside.pid == 0 && keeper_start(&host->outside, false, err) < 0)
        return NULL;
    return &host->outside;
}

int host_start_process(const struct host *host, const char *const *argv,
                       const struct process_place *place, struct process *process,
                       struct error *err)
{
    return host->kind == HOST_KIND_SSH ? far_host_process(&host->far, argv, place, process, err)
                                       : process_start(process, argv, place, err);
}

int host_program(const struct host *host, const char *name, char path[RUN_PATH_BYTES],
                 struct error *err)
{
    char far[FAR_PATH_BYTES];
    if (host->kind == HOST_KIND_SSH) {
        snprintf(path, RUN_PATH_BYTES, "%s", far_host_path(&host->far, name, far));
        return 0;
    }
    return strcmp(name, "taillight") == 0 ? program_path_self(path, RUN_PATH_BYTES, err)
           : strcmp(name, "libtaillight-shim.so") == 0
               ? program_path_shim(path, RUN_PATH_BYTES, err)
               : program_path_beside(name, path, RUN_PATH_BYTES, err);
}

bool host_is_root(const struct host *host)
{
    return host->kind == HOST_KIND_SSH ? host->far.is_root : geteuid() == 0;
}

int host_run(const struct host *host, const char *const *argv, struct command_log *log,
             struct error *err)
{
    char described[600];
    struct process_place place = host_place(host, NULL);
    int result = process_run(argv, &place, COMMAND_TIMEOUT_MS, NULL, 0, err);
    command_log_write(log, host->plan->name, "%s%s%s",
                      process_describe(argv, described, sizeof described), result < 0 ? ": " : "",
                      result < 0 ? err->text : "");
    return result;
}

static int host_set(struct host *host, const char *path, const char *value, struct command_log *log,
                    struct error *err)
{
    char old[KEEPER_TEXT_BYTES];
    int result = keeper_set(&host->keeper, path, value, old, err);
    if (result == 0)
        command_log_write(log, host->plan->name, "set %s to %s (was %s)", path, value, old);
    return result;
}

// --- the network between namespaces --------------------------------------------------------------

// IPv6 would add router solicitations and duplicate-address detection to what is measured.
static int quieten(struct host *host, struct command_log *log, struct error *err)
{
    static const char *const paths[] = {"/proc/sys/net/ipv6/conf/all/disable_ipv6",
                                        "/proc/sys/net/ipv6/conf/default/disable_ipv6"};
    struct error no_ipv6;
    for (size_t i = 0; i < 2; i++)
        if (host_set(host, paths[i], "1", log, &no_ipv6) < 0)
            command_log_write(log, host->plan->name, "no IPv6 to switch off: %s", no_ipv6.text);
    return host_run(host, (const char *[]){"ip", "link", "set", "lo", "up", NULL}, log, err);
}

// One end of a cable: its address, the way to the other end, and who handles what arrives.
static int plug_in(struct host *host, const char *device, const struct host *other,
                   struct command_log *log, struct error *err)
{
    char path[100], mask[400];
    int result = host_run(host,
                          (const char *[]){"ip", "address", "add", host->address, "peer",
                                           other->address, "dev", device, NULL},
                          log, err);
    if (result == 0)
        result =
            host_run(host, (const char *[]){"ip", "link", "set", device, "up", NULL}, log, err);
    if (result < 0)
        return result;
    snprintf(path, sizeof path, "/sys/class/net/%s/queues/rx-0/rps_cpus", device);
    units_format_core_mask(&host->plan->cores, mask, sizeof mask);
    return host_set(host, path, mask, log, err);
}

static int join(struct host_array *hosts, size_t first, size_t second, struct command_log *log,
                struct error *err)
{
    char to_second[32], to_first[32], process[16];
    struct host *a = &hosts->items[first], *b = &hosts->items[second];
    snprintf(to_second, sizeof to_second, "to%zu", second);
    snprintf(to_first, sizeof to_first, "to%zu", first);
    snprintf(process, sizeof process, "%d", b->keeper.pid);
    if (log->dry)
        snprintf(process, sizeof process, "PID");
    int result = host_run(a,
                          (const char *[]){"ip", "link", "add", to_second, "type", "veth", "peer",
                                           "name", to_first, "netns", process, NULL},
                          log, err);
    if (result == 0)
        result = plug_in(a, to_second, b, log, err);
    if (result == 0)
        result = plug_in(b, to_first, a, log, err);
    return result;
}

static int make_network(struct host_array *hosts, struct command_log *log, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < hosts->count && result == 0; i++)
        result = quieten(&hosts->items[i], log, err);
    for (size_t i = 0; i < hosts->count; i++)
        for (size_t j = i + 1; j < hosts->count && result == 0; j++)
            result = join(hosts, i, j, log, err);
    return result;
}

// --- starting and ending -------------------------------------------------------------------------

// One here: a keeper is all it takes.
static int start_here(struct host *host, size_t number, struct error *err)
{
    bool isolated = host->kind == HOST_KIND_NETNS, dry = host->keeper.dry;
    int result = 0;
    if (dry)
        host->keeper = (struct keeper){.channel = -1, .isolated = isolated, .dry = true};
    else
        result = keeper_start(&host->keeper, isolated, err);
    snprintf(host->address, sizeof host->address, "%s", "127.0.0.1");
    if (result == 0 && isolated) {
        snprintf(host->address, sizeof host->address, "10.181.0.%u", (unsigned char)(number + 1));
        snprintf(host->netns, sizeof host->netns, "/proc/%d/ns/net", host->keeper.pid);
        if (dry)
            snprintf(host->netns, sizeof host->netns, "/proc/PID/ns/net");
    }
    return result;
}

static int start_far(struct host *host, const struct run_folder *folder, struct error *err)
{
    char name[100], log[RUN_PATH_BYTES + 128];
    if (host->keeper.dry) {
        far_host_pretend(&host->far, host->plan);
        snprintf(host->address, sizeof host->address, "ADDRESS");
        return 0;
    }
    snprintf(name, sizeof name, "logs/ssh-%s.log", host->plan->name);
    run_folder_path(folder, name, log);
    int result = far_host_start(&host->far, &host->keeper, host->plan, log, err);
    if (result == 0)
        snprintf(host->address, sizeof host->address, "%s", host->far.address);
    return result;
}

static void tell_start(const struct host *host, struct command_log *log)
{
    char ssh[2000];
    if (host->kind == HOST_KIND_SSH && log->dry)
        command_log_write(log, host->plan->name,
                          "copy this program there, into %s, and start a keeper, through: %s",
                          host->far.directory, far_host_describe(host->plan, ssh, sizeof ssh));
    else if (log->dry)
        command_log_write(log, host->plan->name, "start a keeper%s, address %s",
                          host->kind == HOST_KIND_NETNS ? " in a network namespace of its own" : "",
                          host->address);
    else if (host->kind == HOST_KIND_SSH)
        command_log_write(log, host->plan->name, "ssh %s: Linux %s, address %s, directory %s",
                          host->plan->address, host->far.kernel, host->address,
                          host->far.directory);
    else
        command_log_write(log, host->plan->name, "keeper is process %d, address %s",
                          host->keeper.pid, host->address);
}

static int start_hosts(struct host_array *hosts, const struct experiment *experiment, bool isolated,
                       const struct run_folder *folder, struct command_log *log, struct error *err)
{
    struct error ignored;
    if (array_reserve(hosts, experiment->hosts.count) < 0)
        return error_set(err, ERROR_FAILED, "out of memory");
    for (size_t i = 0; i < experiment->hosts.count; i++) {
        const struct experiment_host *plan = &experiment->hosts.items[i];
        struct host *host = &hosts->items[i];
        *host = (struct host){.plan = plan, .kind = plan->kind};
        if (plan->kind == HOST_KIND_NETNS && !isolated)
            host->kind = HOST_KIND_LOCAL;
        host->keeper.dry = log->dry;
        int result =
            host->kind == HOST_KIND_SSH ? start_far(host, folder, err) : start_here(host, i, err);
        if (result < 0) {
            hosts_end(hosts, log, &ignored);
            return result;
        }
        hosts->count++;
        tell_start(host, log);
    }
    return 0;
}

int hosts_start(struct host_array *hosts, const struct experiment *experiment,
                const struct run_folder *folder, struct command_log *log, struct error *degraded,
                struct error *err)
{
    struct error ignored;
    bool isolated = experiment->hosts.items[0].kind == HOST_KIND_NETNS;
    *hosts = (struct host_array){0};
    degraded->kind = ERROR_NONE;
    if (isolated && start_hosts(hosts, experiment, true, folder, log, degraded) < 0)
        isolated = false;
    int result = 0;
    if (!isolated)
        result = start_hosts(hosts, experiment, false, folder, log, err);
    else
        result = make_network(hosts, log, err);
    if (result < 0)
        hosts_end(hosts, log, &ignored);
    return result;
}

int hosts_end(struct host_array *hosts, struct command_log *log, struct error *err)
{
    int result = 0;
    for (size_t i = hosts->count; i-- > 0;) {
        struct error one, other;
        int ended = keeper_end(&hosts->items[i].outside, &one);
        int last = keeper_end(&hosts->items[i].keeper, ended < 0 ? &other : &one);
        ended = ended < 0 ? ended : last;
        if (hosts->items[i].kind == HOST_KIND_SSH)
            far_host_end(&hosts->items[i].far);
        command_log_write(log, hosts->items[i].plan->name, "%s",
                          ended < 0  ? one.text
                          : log->dry ? "undo everything"
                                     : "everything undone");
        if (ended < 0 && result == 0) {
            *err = one;
            result = ended;
        }
    }
    array_free(hosts);
    return result;
}
