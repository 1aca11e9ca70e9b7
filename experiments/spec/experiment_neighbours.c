// SPDX-License-Identifier: MIT
#include "experiments/spec/experiment_neighbours.h"

#include <stdio.h>

#include "experiments/servers/server_kind.h"

static int resolve_neighbour_load(struct resolver *r, int node,
                                  const struct neighbour_load_spec *spec,
                                  struct experiment_neighbour_load *load)
{
    int result = resolve_host_name(r, node, "from", spec->from, "client", &load->from);
    if (result < 0)
        return result;
    if (!spec->rate)
        return yaml_error(r->source, node, r->err,
                          "load: `rate` is missing; requests per second, e.g. `rate: 5k`");
    load->connections = 16;
    load->depth = 8;
    load->cores = r->experiment->hosts.items[load->from].cores;
    if ((result = resolve_rate(r, node, spec->rate, &load->rate)) < 0 ||
        (result = resolve_count(r, node, "connections", spec->connections, 1, 4096,
                                &load->connections)) < 0 ||
        (result = resolve_count(r, node, "depth", spec->depth, 1, 4096, &load->depth)) < 0)
        return result;
    return resolve_cores(r, node, &r->experiment->hosts.items[load->from], spec->cores,
                         spec->cores_count, &load->cores);
}

// Keys that only other kinds take.
static int check_neighbour_keys(const struct resolver *r, int node,
                                const struct neighbour_kind *kind)
{
    for (const struct neighbour_kind *const *other = neighbour_kinds; *other; other++)
        for (const char *const *key = (*other)->keys; *key; key++)
            if (yaml_key(r->source, node, *key) && !neighbour_kind_has_key(kind, *key))
                return yaml_error(r->source, yaml_key(r->source, node, *key), r->err,
                                  "`%s` is for `kind: %s`%s%s", *key, (*other)->name,
                                  kind->instead ? "; " : "", kind->instead ? kind->instead : "");
    return 0;
}

static int resolve_serving(struct resolver *r, int node, const struct neighbour_spec *spec,
                           struct experiment_neighbour *neighbour)
{
    uint64_t port = neighbour->kind->server->port;
    int load = yaml_child(r->source, node, "load");
    const struct experiment_server_array *servers = &r->experiment->servers;
    neighbour->workers = 1;
    neighbour->page_bytes = NGINX_PAGE_BYTES;
    int result = resolve_count(r, node, "workers", spec->workers, 1, 1024, &neighbour->workers);
    if (result == 0)
        result = resolve_bytes(r, node, "page", spec->page, 1, &neighbour->page_bytes);
    if (result == 0)
        result = resolve_count(r, node, "rules", spec->rules, 0, 100000, &neighbour->rules);
    if (result == 0)
        result = resolve_count(r, node, "port", spec->port, 1, 65535, &port);
    neighbour->port = (uint16_t)port;
    for (size_t i = 0; i < servers->count && result == 0; i++)
        if (neighbour->host == servers->items[i].host && port == servers->items[i].port)
            result = yaml_error(r->source, node, r->err,
                                "port: %u is the server's on this host; give %s another `port`",
                                neighbour->port, neighbour->kind->name);
    if (result == 0 && load)
        result = resolve_neighbour_load(r, load, &spec->load, &neighbour->load);
    return result;
}

static int resolve_command(struct resolver *r, int node, const struct neighbour_spec *spec,
                           struct experiment_neighbour *neighbour)
{
    if (spec->command_count == 0)
        return yaml_error(r->source, node, r->err,
                          "a neighbour needs `command: [program, argument, ...]`");
    return resolve_words(r, spec->command, spec->command_count, &neighbour->command);
}

static int resolve_times(struct resolver *r, int node, const struct neighbour_spec *spec,
                         struct experiment_neighbour *neighbour)
{
    uint64_t end_ns = r->experiment->load.duration_ns;
    int result = resolve_duration(r, node, "start", spec->start, &neighbour->start_ns);
    if (result == 0)
        result = resolve_duration(r, node, "stop", spec->stop, &neighbour->stop_ns);
    if (result < 0)
        return result;
    if (neighbour->start_ns >= end_ns)
        return yaml_error(r->source, yaml_child(r->source, node, "start"), r->err,
                          "start: %s is not before the load's end", spec->start);
    if (spec->stop && (neighbour->stop_ns <= neighbour->start_ns || neighbour->stop_ns > end_ns))
        return yaml_error(r->source, yaml_child(r->source, node, "stop"), r->err,
                          "stop: %s is not between its start and the load's end", spec->stop);
    return 0;
}

static int resolve_neighbour(struct resolver *r, int node, const struct neighbour_spec *spec,
                             struct experiment_neighbour *neighbour)
{
    int result = resolve_host_name(r, node, "host", spec->host, "server", &neighbour->host);
    if (result < 0)
        return result;
    neighbour->kind = neighbour_kinds[spec->kind];
    if ((result = check_neighbour_keys(r, node, neighbour->kind)) < 0)
        return result;
    neighbour->cores = r->experiment->hosts.items[neighbour->host].cores;
    result = neighbour->kind->server ? resolve_serving(r, node, spec, neighbour)
                                     : resolve_command(r, node, spec, neighbour);
    if (result < 0 ||
        (result = resolve_cores(r, node, &r->experiment->hosts.items[neighbour->host], spec->cores,
                                spec->cores_count, &neighbour->cores)) < 0 ||
        (result = resolve_nice(r, node, spec->nice, &neighbour->nice)) < 0)
        return result;
    return resolve_times(r, node, spec, neighbour);
}

int resolve_neighbours(struct resolver *r)
{
    int neighbours = yaml_child(r->source, yaml_root(r->source), "neighbours");
    struct experiment_neighbour_array *all = &r->experiment->neighbours;
    for (size_t i = 0; i < r->spec->neighbours_count; i++) {
        const struct neighbour_entry *entry = &r->spec->neighbours[i];
        int result = check_name(r, yaml_entry_key(r->source, neighbours, i), entry->name,
                                EXPERIMENT_PART_NAME_BYTES - 1);
        if (result < 0)
            return result;
        if (array_push(all, (struct experiment_neighbour){.host = 0}) < 0)
            return out_of_memory(r);
        snprintf(all->items[i].name, sizeof all->items[i].name, "%s", entry->name);
        result = resolve_neighbour(r, yaml_entry(r->source, neighbours, i), &entry->value,
                                   &all->items[i]);
        if (result < 0)
            return result;
    }
    return 0;
}
