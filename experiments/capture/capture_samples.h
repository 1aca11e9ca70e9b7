// SPDX-License-Identifier: MIT
//
// The `samples` backend of `taillight capture`: perf interrupts the recorded cores so many times a
// second and notes where they were and who had called that, into <out>/perf.data, while the other
// backends record what they can. Times are of CLOCK_MONOTONIC_RAW, which is the run's host time, so
// that a sample falls into the spans of the events beside it without conversion.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_SAMPLES_H
#define EXPERIMENTS_CAPTURE_CAPTURE_SAMPLES_H

#include <jansson.h>
#include <sched.h>

#include "base/error.h"
#include "experiments/common/run_folder.h"
#include "profiler/perf_recorder.h"
#include "profiler/sampling.h"

struct capture_samples_options {
    const char *perf;     // program; NULL: the one in PATH
    cpu_set_t cores;      // empty: all
    unsigned long wanted; // samples a second of each core; 0: SAMPLING_FREQUENCY
};

struct capture_samples {
    struct perf_recorder recorder;
    struct sampling found;
    unsigned frequency;             // no more than the kernel allows
    char path[RUN_PATH_BYTES + 32]; // of the recording
};

// Starts perf and its events. Where sampling is not possible, says why, and what is needed.
int capture_samples_start(struct capture_samples *samples,
                          const struct capture_samples_options *options, const char *out_dir,
                          struct error *err);

// Ends the recording. *document becomes what capture.json says of it, owned by the caller:
//   {"perf_data": "perf.data", "event", "frequency", "command", "samples", "lost", "throttled",
//    "complaints"}
// lost: samples and other records that perf did not get; throttled: how often the kernel took no
// samples for a while because there were too many.
int capture_samples_stop(struct capture_samples *samples, json_t **document, struct error *err);

#endif
