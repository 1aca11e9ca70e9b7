// SPDX-License-Identifier: MIT
#include "loadgen/load_dataset.h"

#include <stdlib.h>

#include "loadgen/client/node_watch.h"
#include "loadgen/client/tls_tunnel.h"

// The ways to the nodes that keys are stored at: to themselves, or through tunnels.
struct ways {
    struct node_map map;
    struct tls_tunnel *tunnels[NODES_MOST];
    struct dataset_node nodes[NODES_MOST];
    uint16_t owners[CLUSTER_SLOTS];
};

static int open_ways(const struct load_plan *plan, struct ways *ways, struct error *err)
{
    int status = 0;
    for (uint32_t i = 0; i < node_map_count(&ways->map) && status == 0; i++) {
        const struct server_address *node = &ways->map.nodes[i];
        if (plan->tls.on)
            status = tls_tunnel_open(&plan->tls, node, NULL, &ways->tunnels[i], err);
        if (ways->tunnels[i])
            node = tls_tunnel_address(ways->tunnels[i]);
        ways->nodes[i] = (struct dataset_node){node->host, node->port};
    }
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++)
        ways->owners[slot] = node_map_owner(&ways->map, slot);
    return status;
}

// Each key at its node of the cluster.
static int prepare_cluster(const struct load_plan *plan, struct ways *ways,
                           dataset_progress *progress, void *context, struct dataset_report *report,
                           struct error *err)
{
    const struct server_address *server = &plan->server;
    const struct node_source source = {
        .server = server, .login = &plan->login_words, .tls = &plan->tls};
    node_map_init(&ways->map, true);
    int status = node_watch_read(&source, &ways->map, err);
    if (status == 0)
        status = open_ways(plan, ways, err);
    const struct dataset_nodes nodes = {ways->owners, ways->nodes, node_map_count(&ways->map)};
    if (status == 0)
        status = dataset_prepare(&plan->workload, server->host, server->port, &nodes,
                                 plan->tls.on ? server->text : NULL, &plan->login, progress,
                                 context, report, err);
    for (uint32_t i = 0; i < nodes.count; i++)
        if (ways->tunnels[i])
            status = tls_tunnel_close(ways->tunnels[i], status, err);
    return status;
}

// The address of a sentinel's master.
static int find_master(const struct load_plan *plan, struct server_address *master,
                       struct error *err)
{
    const struct node_source source = {.server = &plan->server, .sentinel = plan->options.sentinel};
    struct node_map *map = malloc(sizeof *map);
    if (!map)
        return error_set(err, ERROR_FAILED, "out of memory for the nodes");
    node_map_init(map, false);
    int status = node_watch_read(&source, map, err);
    if (status == 0)
        *master = map->nodes[node_map_owner(map, 0)];
    free(map);
    return status;
}

int load_dataset_prepare(const struct load_plan *plan, dataset_progress *progress, void *context,
                         struct dataset_report *report, struct error *err)
{
    const struct server_address *server = &plan->server;
    struct server_address master;
    struct tls_tunnel *tunnel = NULL;
    if (plan->options.sentinel) {
        int status = find_master(plan, &master, err);
        if (status < 0)
            return status;
        server = &master;
    }
    if (plan->options.cluster) {
        struct ways *ways = calloc(1, sizeof *ways);
        int status = ways ? prepare_cluster(plan, ways, progress, context, report, err)
                          : error_set(err, ERROR_FAILED, "out of memory for the nodes");
        free(ways);
        return status;
    }
    if (plan->tls.on) {
        int status = tls_tunnel_open(&plan->tls, server, NULL, &tunnel, err);
        if (status < 0)
            return status;
        server = tls_tunnel_address(tunnel);
    }
    int status =
        dataset_prepare(&plan->workload, server->host, server->port, NULL,
                        tunnel ? server->text : NULL, &plan->login, progress, context, report, err);
    return tls_tunnel_close(tunnel, status, err);
}
