// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine_nodes.h"
#include "base/text.h"

#include <stdlib.h>

static int check_connections(const struct engine_settings *settings, uint32_t threads,
                             const struct node_map *map, struct error *err)
{
    const uint32_t nodes = node_map_count(map);
    if (settings->connections / threads >= nodes)
        return 0;
    return error_set(err, ERROR_INPUT,
                     "%s: %s nodes, with %u thread%s each of which has a connection to each, need "
                     "%s connections at least, not %s",
                     settings->server->text, TEXT_COUNT(nodes), threads, threads == 1 ? "" : "s",
                     TEXT_COUNT(nodes * threads), TEXT_COUNT(settings->connections));
}

int engine_nodes_open(const struct engine_settings *settings, uint32_t threads,
                      struct engine_nodes *nodes, struct error *err)
{
    const struct node_source source = {.server = settings->server,
                                       .sentinel = settings->sentinel,
                                       .login = settings->login,
                                       .tls = settings->tls};
    if (!settings->cluster && !settings->sentinel)
        return 0;
    if (!settings->workload->protocol->slot)
        return error_set(err, ERROR_INPUT, "%s: protocol %s has no clusters and no sentinels",
                         settings->server->text, settings->workload->protocol->name);
    nodes->map = malloc(sizeof *nodes->map);
    if (!nodes->map)
        return error_set(err, ERROR_FAILED, "out of memory for the map of the nodes");
    node_map_init(nodes->map, settings->cluster);
    int status = node_watch_read(&source, nodes->map, err);
    if (status == 0)
        status = check_connections(settings, threads, nodes->map, err);
    return status < 0 ? status : node_watch_begin(&source, nodes->map, &nodes->watch, err);
}

void engine_nodes_close(struct engine_nodes *nodes, struct engine_result *result)
{
    const struct node_watch_counts counts = node_watch_end(nodes->watch);
    if (nodes->map) {
        result->nodes = node_map_count(nodes->map);
        result->counts.redirections.map_reads += counts.reads;
        result->counts.redirections.map_failures += counts.failures;
    }
    free(nodes->map);
    *nodes = (struct engine_nodes){0};
}
