// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine_result.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int engine_result_take_samples(struct engine_result *result, size_t count, struct error *err)
{
    const size_t bytes = (count + 1) * sizeof *result->samples;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return error_set_errno(err, ERROR_FAILED, "cannot take %zu MiB for %s samples", bytes >> 20,
                               TEXT_COUNT(count));
    result->samples = memory;
    result->sample_bytes = bytes;
    return 0;
}

bool engine_result_hit_cap(const struct engine_result *result)
{
    return result->depth_is_cap && result->delayed_by_depth &&
           result->counts.in_flight_max >= result->depth;
}

double engine_result_first_failover_s(const struct engine_result *result)
{
    const uint64_t tsc = result->counts.redirections.first_failover_tsc;
    return (double)(int64_t)(tsc - result->start_tsc) / result->tsc_hz;
}

void engine_result_free(struct engine_result *result)
{
    if (result->samples)
        munmap(result->samples, result->sample_bytes);
    sample_totals_free(result->totals);
    if (result->journal)
        log_writer_discard(result->journal);
    free(result->journal);
    free(result->connections);
    array_free(&result->clock);
    memset(result, 0, sizeof *result);
}
