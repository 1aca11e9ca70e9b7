// SPDX-License-Identifier: MIT
//
// Collects the machine code of the BPF programs that come while a processor's trace is recorded
// (profiler/trace/bpf_code_log.h): without it no decoder can follow the trace through them. The
// kernel numbers programs upwards, so a look at whether one has come is one system call. A program
// that came and went between two looks is missed, and counted.
#ifndef PROFILER_TRACE_BPF_CODE_RECORDER_H
#define PROFILER_TRACE_BPF_CODE_RECORDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log_file.h"

struct bpf_code_recorder {
    char path[4096];
    struct log_writer log;
    bool open;     // something was written
    uint32_t last; // the newest program that was looked at
    uint64_t programs;
    uint64_t missed; // had gone (at most so many), or their code is not shown
    uint64_t unfit;  // beyond what the log may hold
};

// Notes which programs there are, and removes an earlier log of that path. Takes CAP_SYS_ADMIN.
// After a failure nothing is left to release.
int bpf_code_recorder_start(struct bpf_code_recorder *recorder, const char *path,
                            struct error *err);

// Writes the code of the programs that have come since.
int bpf_code_recorder_poll(struct bpf_code_recorder *recorder, struct error *err);

// Completes the log. *document becomes the part of capture.json about it, owned by the caller:
//   {"programs", "missed", "unfit"}
int bpf_code_recorder_stop(struct bpf_code_recorder *recorder, json_t **document,
                           struct error *err);

// Removes a log that was not completed. Harmless after bpf_code_recorder_stop, and on a zeroed one.
void bpf_code_recorder_fini(struct bpf_code_recorder *recorder);

#endif
