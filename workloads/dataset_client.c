// SPDX-License-Identifier: MIT
#include "workloads/dataset_client.h"

int dataset_tell(const struct dataset *dataset, const char *phase, uint64_t done, struct error *err)
{
    if (!dataset->progress ||
        dataset->progress(dataset->context, phase, done, dataset->workload->key_count))
        return 0;
    return error_set(err, ERROR_FAILED, "interrupted while %s keys at %s", phase, dataset->place);
}
