// SPDX-License-Identifier: MIT
#include "experiments/host.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

enum { COMMAND_TIMEOUT_MS = 10000 };

struct process_place host_place(const struct host *host, const cpu_set_t *cores)
{
    return (struct process_place){.netns = host->netns[0] ? host->netns : NULL,
                                  .cores = cores ? cores : &host->plan->cores,
                                  .dry = host->keeper.dry};
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

static int start_keepers(struct host_array *hosts, const struct experiment *experiment,
                         bool isolated, struct command_log *log, struct error *err)
{
    struct error ignored;
    for (size_t i = 0; i < experiment->hosts.count; i++) {
        struct host host = {.plan = &experiment->hosts.items[i],
                            .kind = isolated ? HOST_KIND_NETNS : HOST_KIND_LOCAL};
        int result = 0;
        if (log->dry)
            host.keeper = (struct keeper){.channel = -1, .isolated = isolated, .dry = true};
        else
            result = keeper_start(&host.keeper, isolated, err);
        if (result == 0 && array_push(hosts, host) < 0) {
            keeper_end(&host.keeper, &ignored);
            result = error_set(err, ERROR_FAILED, "out of memory");
        }
        if (result < 0) {
            hosts_end(hosts, log, &ignored);
            return result;
        }
        struct host *kept = &hosts->items[i];
        snprintf(kept->address, sizeof kept->address, "%s", "127.0.0.1");
        if (isolated) {
            snprintf(kept->address, sizeof kept->address, "10.181.0.%u", (unsigned char)(i + 1));
            snprintf(kept->netns, sizeof kept->netns, "/proc/%d/ns/net", kept->keeper.pid);
        }
        if (isolated && log->dry)
            snprintf(kept->netns, sizeof kept->netns, "/proc/PID/ns/net");
        if (log->dry)
            command_log_write(log, kept->plan->name, "start a keeper%s, address %s",
                              isolated ? " in a network namespace of its own" : "", kept->address);
        else
            command_log_write(log, kept->plan->name, "keeper is process %d, address %s",
                              kept->keeper.pid, kept->address);
    }
    return 0;
}

int hosts_start(struct host_array *hosts, const struct experiment *experiment,
                struct command_log *log, struct error *degraded, struct error *err)
{
    struct error ignored;
    bool isolated = experiment->hosts.items[0].kind == HOST_KIND_NETNS;
    *hosts = (struct host_array){0};
    degraded->kind = ERROR_NONE;
    if (isolated && start_keepers(hosts, experiment, true, log, degraded) < 0)
        isolated = false;
    int result = 0;
    if (!isolated)
        result = start_keepers(hosts, experiment, false, log, err);
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
        struct error one;
        int ended = keeper_end(&hosts->items[i].keeper, &one);
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
