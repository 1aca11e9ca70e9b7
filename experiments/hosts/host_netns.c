// SPDX-License-Identifier: MIT
//
// A host that is a network namespace without a name, which lives as long as its keeper. Such hosts
// are joined pairwise by veth cables made inside them, or each to the bridge where there is one
// (host_bridge.c), so nothing of them is seen on the machine and nothing of them can be left
// behind. RPS steers what each receives onto its own cores.
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "experiments/hosts/host.h"
#include "experiments/hosts/host_kind.h"

#define BRIDGE "br0" // in its host's namespace

static int host_set(struct host *host, const char *path, const char *value, struct command_log *log,
                    struct error *err)
{
    char old[KEEPER_TEXT_BYTES];
    int result = keeper_set(&host->keeper, path, value, old, err);
    if (result == 0)
        command_log_write(log, host->plan->name, "set %s to %s (was %s)", path, value, old);
    return result;
}

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

// The address of a cable's end and the way to the other, whatever is there; a bridge has one for
// all of its ends.
static int give_address(struct host *host, const char *device, const struct host *other,
                        struct command_log *log, struct error *err)
{
    char in_network[sizeof host->address + 4];
    snprintf(in_network, sizeof in_network, "%s/24", host->address);
    return host->kind->is_bridge
               ? host_run(host,
                          (const char *[]){"ip", "link", "set", device, "master", BRIDGE, NULL},
                          log, err)
           : other->kind->is_bridge
               ? host_run(host,
                          (const char *[]){"ip", "address", "add", in_network, "dev", device, NULL},
                          log, err)
               : host_run(host,
                          (const char *[]){"ip", "address", "add", host->address, "peer",
                                           other->address, "dev", device, NULL},
                          log, err);
}

// One end of a cable: its address, and who handles what arrives.
static int plug_in(struct host *host, const char *device, const struct host *other,
                   struct command_log *log, struct error *err)
{
    char path[100], mask[400];
    int result = give_address(host, device, other, log, err);
    if (result == 0)
        result =
            host_run(host, (const char *[]){"ip", "link", "set", device, "up", NULL}, log, err);
    if (result < 0)
        return result;
    snprintf(path, sizeof path, "/sys/class/net/%s/queues/rx-0/rps_cpus", device);
    units_format_core_mask(&host->plan->cores, mask, sizeof mask);
    return host_set(host, path, mask, log, err);
}

static int join_pair(struct host_array *hosts, size_t first, size_t second, struct command_log *log,
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

// Bridges that hand packets to iptables cut off what `taillight capsule --carry` puts behind them.
static int make_bridge(struct host *host, struct command_log *log, struct error *err)
{
    static const char *const cutting[] = {"/proc/sys/net/bridge/bridge-nf-call-iptables",
                                          "/proc/sys/net/bridge/bridge-nf-call-ip6tables"};
    char address[sizeof host->address + 4];
    struct error ignored;
    snprintf(address, sizeof address, "%s/24", host->address);
    const char *const *const commands[] = {
        (const char *[]){"ip", "link", "add", BRIDGE, "type", "bridge", NULL},
        (const char *[]){"ip", "address", "add", address, "dev", BRIDGE, NULL},
        (const char *[]){"ip", "link", "set", BRIDGE, "up", NULL}};
    int result = 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands && result == 0; i++)
        result = host_run(host, commands[i], log, err);
    for (size_t i = 0; i < 2 && result == 0; i++)
        if (host_set(host, cutting[i], "0", log, &ignored) < 0)
            command_log_write(log, host->plan->name, "bridges hand no packets to iptables here");
    return result;
}

int host_join_netns(struct host_array *hosts, struct command_log *log, struct error *err)
{
    bool bridged = false;
    int result = 0;
    for (size_t i = 0; i < hosts->count && result == 0; i++) {
        struct host *host = &hosts->items[i];
        result = quieten(host, log, err);
        if (result == 0 && host->kind->is_bridge)
            result = make_bridge(host, log, err);
        bridged |= host->kind->is_bridge;
    }
    for (size_t i = 0; i < hosts->count; i++)
        for (size_t j = i + 1; j < hosts->count && result == 0; j++)
            if (!bridged || hosts->items[i].kind->is_bridge || hosts->items[j].kind->is_bridge)
                result = join_pair(hosts, i, j, log, err);
    return result;
}

int host_start_netns(struct host *host, size_t number, const struct run_folder *folder,
                     struct command_log *log, struct error *err)
{
    (void)folder;
    int result = host_start_here(host, true, err);
    if (result < 0)
        return result;
    snprintf(host->address, sizeof host->address, "10.181.0.%u", (unsigned char)(number + 1));
    if (log->dry)
        snprintf(host->netns, sizeof host->netns, "/proc/PID/ns/net");
    else
        snprintf(host->netns, sizeof host->netns, "/proc/%d/ns/net", host->keeper.pid);
    snprintf(host->agent_place, sizeof host->agent_place, "netns=%s", host->netns);
    if (log->dry)
        command_log_write(log, host->plan->name,
                          "start a keeper in a network namespace of its own, address %s",
                          host->address);
    else
        command_log_write(log, host->plan->name, "keeper is process %d, address %s",
                          host->keeper.pid, host->address);
    return 0;
}

const struct host_kind host_netns = {
    .name = "netns",
    .help = "this machine, in a network namespace made for the run",
    .keys = (const char *const[]){NULL},
    .is_joined = true,
    .own_cards = "to*",
    .program = "ip",
    .fallback = &host_local,
    .check = host_needs_no_check,
    .start = host_start_netns,
    .join = host_join_netns,
    .start_process = host_start_process_here,
    .find_program = host_find_program_here,
    .end = host_needs_no_end,
};
