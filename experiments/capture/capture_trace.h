// SPDX-License-Identifier: MIT
//
// The `intel_pt` backend of `taillight capture`: perf records the processor's trace into
// <out>/perf.data while the other backends record what they can, and what of the trace was lost is
// counted at the end.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_TRACE_H
#define EXPERIMENTS_CAPTURE_CAPTURE_TRACE_H

#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "experiments/common/run_folder.h"
#include "profiler/perf_recorder.h"

struct capture_trace_options {
    const char *detail; // "light", "normal", "fine"; NULL: normal
    const char *event;  // perf's words in place of a preset; NULL: the preset
    const char *perf;   // program; NULL: the one in PATH
    const char *pids;   // these processes instead of cores; NULL: cores
    cpu_set_t cores;    // empty: all
    uint64_t buffer_bytes;
    bool per_thread, snapshot;
};

struct capture_trace {
    struct perf_recorder recorder;
    char event[256], path[RUN_PATH_BYTES + 32]; // path: of the recording
    bool kcore;
    bool absent; // this host has no processor trace at all
};

// What is wrong with the options, before anything is begun.
int capture_trace_check(const struct capture_trace_options *options, struct error *err);

// Starts perf and its events. Where Intel PT is missing, says what is, and how to get it.
int capture_trace_start(struct capture_trace *trace, const struct capture_trace_options *options,
                        const char *out_dir, struct error *err);

// Ends the recording. *document becomes what capture.json says of it, owned by the caller:
//   {"perf_data": "perf.data", "event", "command", "kcore", "snapshots", "streams", "bytes",
//    "truncated", "lost_records", "complaints"}
// truncated: how often the AUX buffer was full, so that trace was lost.
int capture_trace_stop(struct capture_trace *trace, json_t **document, struct error *err);

#endif
