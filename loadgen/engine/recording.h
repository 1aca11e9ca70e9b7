// SPDX-License-Identifier: MIT
//
// A recorded schedule that is sent again (`--arrivals replay:FILE`): a samples.tlog, whose intended
// times, operations and keys are repeated, or a CSV with one ascending time in seconds per line,
// with operations and keys drawn from the workload. The first request keeps its time: a recording
// whose first request comes late begins with that pause.
#ifndef LOADGEN_ENGINE_RECORDING_H
#define LOADGEN_ENGINE_RECORDING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "loadgen/engine/schedule.h"
#include "workloads/workload.h"

struct recording {
    struct schedule requests; // in recorded time
    bool complete;            // operations and keys are recorded as well
};

// ERROR_INPUT with the file and the line or record: not such a file, empty, not ascending, longer
// than a day, or an operation or key that the workload does not have. The caller frees.
int recording_load(const char *path, const struct workload *workload, struct recording *recording,
                   struct error *err);
void recording_free(struct recording *recording);

// Parses the text of a CSV, which may hold any bytes. path: for errors.
int recording_parse(const char *text, size_t bytes, const char *path, struct recording *recording,
                    struct error *err);

// Requests per second until the last of them.
double recording_rate(const struct recording *recording);

// Makes a schedule of it: the recording's times scaled to `rate`, up to duration_ns. Operations and
// keys that are not recorded are drawn from `seed`. The caller frees it.
int recording_draw(const struct recording *recording, const struct workload *workload, double rate,
                   uint64_t duration_ns, uint64_t seed, struct schedule *schedule,
                   struct error *err);

#endif
