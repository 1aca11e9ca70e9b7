// SPDX-License-Identifier: MIT
#include "workloads/dataset.h"

int dataset_prepare(const struct workload *workload, const char *host, uint16_t port,
                    dataset_progress *progress, void *context, struct dataset_report *report,
                    struct error *err)
{
    *report = (struct dataset_report){0};
    switch (workload->protocol->dataset) {
    case DATASET_MEMCACHED:
        return dataset_prepare_memcached(workload, host, port, progress, context, report, err);
    case DATASET_REDIS:
        return dataset_prepare_redis(workload, host, port, progress, context, report, err);
    case DATASET_NONE:
        break;
    }
    return 0;
}
