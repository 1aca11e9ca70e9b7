// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine_result.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void engine_result_free(struct engine_result *result)
{
    if (result->samples)
        munmap(result->samples, result->sample_bytes);
    free(result->connections);
    memset(result, 0, sizeof *result);
}
