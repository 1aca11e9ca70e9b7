// SPDX-License-Identifier: MIT
#include "experiments/spec/experiment_hosts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "experiments/remote/link_file.h"

// --- behind ssh ----------------------------------------------------------------------------------

// Keys that only one kind has.
static int check_ssh_keys(const struct resolver *r, int node, const struct experiment_host *host)
{
    static const char *const ours[] = {"address", "nic", "directory", "ssh_config", "ssh_options"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (host->kind != HOST_KIND_SSH && yaml_key(r->source, node, ours[i]))
            return yaml_error(r->source, yaml_key(r->source, node, ours[i]), r->err,
                              "`%s` is for hosts of `kind: ssh`", ours[i]);
    return 0;
}

static int check_options(const struct resolver *r, int node, const struct host_spec *spec)
{
    int list = yaml_child(r->source, node, "ssh_options");
    for (size_t i = 0; i < spec->ssh_options_count; i++)
        if (!isalpha((unsigned char)spec->ssh_options[i][0]) ||
            !strpbrk(spec->ssh_options[i], "= "))
            return yaml_error(r->source, yaml_entry(r->source, list, i), r->err,
                              "ssh_options: `%s` is not one as in ssh_config(5): \"Port=2222\"",
                              spec->ssh_options[i]);
    return 0;
}

static int resolve_ssh(struct resolver *r, int node, const struct host_spec *spec,
                       struct experiment_host *host)
{
    host->address = spec->address;
    host->nic = spec->nic;
    host->ssh_config = spec->ssh_config;
    host->directory = spec->directory ? spec->directory : "/tmp";
    if (!host->address)
        return yaml_error(r->source, node, r->err,
                          "a host of kind ssh needs `address: user@host`, as ssh takes it");
    if (!link_file_address_is_plain(host->address))
        return yaml_error(r->source, yaml_child(r->source, node, "address"), r->err,
                          "address: `%s` is not a [user@]host as ssh takes it", host->address);
    if (!spec->cores)
        return yaml_error(r->source, node, r->err,
                          "a host of kind ssh needs `cores`, e.g. `cores: [0-3]`");
    if (!link_file_base_is_plain(host->directory))
        return yaml_error(r->source, yaml_child(r->source, node, "directory"), r->err,
                          "directory: `%s` is not an absolute path of letters, digits, `.`, `_`, "
                          "`-` and `/`",
                          host->directory);
    if (check_options(r, node, spec) < 0)
        return -ERROR_INPUT;
    return resolve_words(r, spec->ssh_options, spec->ssh_options_count, &host->ssh_options);
}

// --- all kinds -----------------------------------------------------------------------------------

static bool is_netns(enum host_kind kind)
{
    return kind == HOST_KIND_NETNS;
}

static int resolve_host(struct resolver *r, int node, const struct host_spec *spec,
                        struct experiment_host *host)
{
    int result = check_ssh_keys(r, node, host);
    if (result == 0)
        result = resolve_cores(r, node, host, spec->cores, spec->cores_count, &host->cores);
    return result == 0 && host->kind == HOST_KIND_SSH ? resolve_ssh(r, node, spec, host) : result;
}

int resolve_hosts(struct resolver *r)
{
    struct experiment_host_array *all = &r->experiment->hosts;
    int hosts = yaml_child(r->source, yaml_root(r->source), "hosts");
    if (r->spec->hosts_count == 0)
        return yaml_error(r->source, hosts, r->err,
                          "hosts: name one at least, e.g. `hosts: {client: {kind: netns}, server: "
                          "{kind: netns}}`");
    for (size_t i = 0; i < r->spec->hosts_count; i++) {
        const struct host_entry *entry = &r->spec->hosts[i];
        int node = yaml_entry(r->source, hosts, i);
        int result = check_name(r, yaml_entry_key(r->source, hosts, i), entry->name,
                                EXPERIMENT_PART_NAME_BYTES - 1);
        if (result < 0)
            return result;
        if (array_push(all, (struct experiment_host){.kind = entry->value.kind}) < 0)
            return out_of_memory(r);
        struct experiment_host *host = &all->items[i];
        snprintf(host->name, sizeof host->name, "%s", entry->name);
        host->cores = r->machine;
        result = resolve_host(r, node, &entry->value, host);
        if (result < 0)
            return result;
        if (is_netns(host->kind) != is_netns(all->items[0].kind))
            return yaml_error(r->source, node, r->err,
                              "`%s` is of kind %s and `%s` of kind %s, and no network joins them; "
                              "make all hosts of one kind",
                              host->name, host_kind_name(host->kind), all->items[0].name,
                              host_kind_name(all->items[0].kind));
    }
    return 0;
}

int check_hosts_meet(const struct resolver *r)
{
    const struct experiment *experiment = r->experiment;
    const struct experiment_load *load = &experiment->load;
    const struct experiment_host *hosts = experiment->hosts.items;
    const struct experiment_server *server = &experiment->servers.items[load->to];
    if (hosts[server->host].kind != HOST_KIND_LOCAL)
        return 0;
    bool far = hosts[load->from].kind == HOST_KIND_SSH;
    for (size_t i = 0; i < load->agents.count; i++)
        far |= hosts[load->agents.items[i].host].kind == HOST_KIND_SSH;
    int servers = yaml_child(r->source, yaml_root(r->source), "servers");
    return !far ? 0
                : yaml_error(r->source, yaml_entry_key(r->source, servers, 0), r->err,
                             "the server `%s` is on the local host `%s`, on 127.0.0.1, where load "
                             "from a host of kind ssh does not reach it; make that host ssh, too",
                             server->name, hosts[server->host].name);
}
