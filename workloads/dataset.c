// SPDX-License-Identifier: MIT
#include "workloads/dataset.h"

#include <stdio.h>
#include <stdlib.h>

int dataset_prepare(const struct workload *workload, const char *host, uint16_t port,
                    const struct dataset_nodes *nodes, const char *place, const struct login *login,
                    dataset_progress *progress, void *context, struct dataset_report *report,
                    struct error *err)
{
    *report = (struct dataset_report){0};
    if (workload->protocol->dataset == DATASET_NONE)
        return 0;
    struct dataset dataset = {.workload = workload,
                              .host = host,
                              .port = port,
                              .nodes = nodes,
                              .login = login,
                              .tunnelled = place != NULL,
                              .progress = progress,
                              .context = context,
                              .report = report,
                              .value = malloc(workload_value_bytes_max(workload) + 1)};
    if (!dataset.value)
        return error_set(err, ERROR_FAILED, "out of memory for the dataset");
    if (place || host[0] == '/')
        snprintf(dataset.place, sizeof dataset.place, "%s", place ? place : host);
    else
        snprintf(dataset.place, sizeof dataset.place, "%s port %u", host, port);
    int result = workload->protocol->dataset == DATASET_MEMCACHED
                     ? dataset_prepare_memcached(&dataset, err)
                     : dataset_prepare_redis(&dataset, err);
    free(dataset.value);
    return result;
}
