// SPDX-License-Identifier: MIT
#include "loadgen/load_dataset.h"

#include "loadgen/client/tls_tunnel.h"

int load_dataset_prepare(const struct load_plan *plan, dataset_progress *progress, void *context,
                         struct dataset_report *report, struct error *err)
{
    const struct server_address *server = &plan->server;
    struct tls_tunnel *tunnel = NULL;
    if (plan->tls.on) {
        int status = tls_tunnel_open(&plan->tls, server, &tunnel, err);
        if (status < 0)
            return status;
        server = tls_tunnel_address(tunnel);
    }
    int status =
        dataset_prepare(&plan->workload, server->host, server->port, tunnel ? server->text : NULL,
                        &plan->login, progress, context, report, err);
    return tls_tunnel_close(tunnel, status, err);
}
