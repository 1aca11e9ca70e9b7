// SPDX-License-Identifier: MIT
#include "experiments/spec/experiment_hosts.h"

#include <stdio.h>

#include "experiments/hosts/host_kind.h"

// Keys that only other kinds take.
static int check_host_keys(const struct resolver *r, int node, const struct host_kind *kind)
{
    for (const struct host_kind *const *other = host_kinds; *other; other++)
        for (const char *const *key = (*other)->keys; *key; key++)
            if (yaml_key(r->source, node, *key) && !host_kind_has_key(kind, *key))
                return yaml_error(r->source, yaml_key(r->source, node, *key), r->err,
                                  "`%s` is for hosts of `kind: %s`", *key, (*other)->name);
    return 0;
}

static int check_host(const struct resolver *r, int node, const struct experiment_host *host)
{
    struct error inner;
    const char *key = NULL;
    size_t entry = SIZE_MAX;
    if (host->kind->check(host, &key, &entry, &inner) == 0)
        return 0;
    if (key)
        node = yaml_child(r->source, node, key);
    if (entry != SIZE_MAX)
        node = yaml_entry(r->source, node, entry);
    return yaml_error(r->source, node, r->err, "%s", inner.text);
}

static int resolve_host(struct resolver *r, int node, const struct host_spec *spec,
                        struct experiment_host *host)
{
    int result = check_host_keys(r, node, host->kind);
    if (result == 0)
        result = resolve_cores(r, node, host, spec->cores, spec->cores_count, &host->cores);
    if (result == 0)
        result = resolve_words(r, spec->ssh_options, spec->ssh_options_count, &host->ssh_options);
    host->address = spec->address;
    host->nic = spec->nic;
    host->ssh_config = spec->ssh_config;
    host->directory = spec->directory ? spec->directory : "/tmp";
    if (result == 0)
        result = check_host(r, node, host);
    if (result == 0 && host->kind->is_elsewhere && !spec->cores)
        return yaml_error(r->source, node, r->err,
                          "a host of kind %s needs `cores`, e.g. `cores: [0-3]`", host->kind->name);
    return result;
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
        if (array_push(all, (struct experiment_host){.kind = host_kinds[entry->value.kind]}) < 0)
            return out_of_memory(r);
        struct experiment_host *host = &all->items[i];
        snprintf(host->name, sizeof host->name, "%s", entry->name);
        host->cores = r->machine;
        result = resolve_host(r, node, &entry->value, host);
        if (result < 0)
            return result;
        if (host->kind->is_joined != all->items[0].kind->is_joined)
            return yaml_error(r->source, node, r->err,
                              "`%s` is of kind %s and `%s` of kind %s, and no network joins them; "
                              "make all hosts of one kind",
                              host->name, host->kind->name, all->items[0].name,
                              all->items[0].kind->name);
    }
    return 0;
}

int check_hosts_meet(const struct resolver *r)
{
    const struct experiment *experiment = r->experiment;
    const struct experiment_load *load = &experiment->load;
    const struct experiment_host *hosts = experiment->hosts.items;
    const struct experiment_server *server = &experiment->servers.items[load->to];
    const struct experiment_host *far =
        hosts[load->from].kind->is_elsewhere ? &hosts[load->from] : NULL;
    for (size_t i = 0; i < load->agents.count && !far; i++)
        if (hosts[load->agents.items[i].host].kind->is_elsewhere)
            far = &hosts[load->agents.items[i].host];
    if (!far || !hosts[server->host].kind->is_alone)
        return 0;
    int servers = yaml_child(r->source, yaml_root(r->source), "servers");
    return yaml_error(
        r->source, yaml_entry_key(r->source, servers, 0), r->err,
        "the server `%s` is on the %s host `%s`, on 127.0.0.1, where load from a host "
        "of kind %s does not reach it; make that host %s, too",
        server->name, hosts[server->host].kind->name, hosts[server->host].name, far->kind->name,
        far->kind->name);
}
