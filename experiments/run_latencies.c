// SPDX-License-Identifier: MIT
#include "experiments/run_latencies.h"

#include <math.h>

#include "base/log_file.h"
#include "loadgen/client/sample_log.h"

int run_latencies_add(const struct run_folder *folder, double tsc_hz, struct latency_array *out,
                      struct error *err)
{
    char path[RUN_PATH_BYTES + 128];
    struct log_reader reader;
    int result = log_reader_open(&reader, run_folder_path(folder, "client/samples.tlog", path),
                                 LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof(struct sample), err);
    if (result < 0)
        return result;
    const struct sample *samples = reader.records;
    if (array_reserve(out, out->count + reader.count) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for the latencies of all runs");
    for (size_t i = 0; result == 0 && i < reader.count; i++)
        out->items[out->count++] =
            sample_is_answered(&samples[i])
                ? (double)(int64_t)(samples[i].reply_tsc - samples[i].intended_tsc) / tsc_hz * 1e6
                : INFINITY;
    log_reader_close(&reader);
    return result;
}
