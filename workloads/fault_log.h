// SPDX-License-Identifier: MIT
//
// When a server, or a program beside it, misbehaved on purpose: a diagnosis is compared with it. A
// text file of lines "BEGIN_NS END_NS KIND", in CLOCK_MONOTONIC_RAW (host time, design §5). It is
// mapped before the first fault, so that recording one costs no system call; unused space stays
// zero bytes.
#ifndef WORKLOADS_FAULT_LOG_H
#define WORKLOADS_FAULT_LOG_H

#include <stdint.h>

#include "base/error.h"

enum { FAULT_LOG_LINES = 4096, FAULT_LOG_LINE_BYTES = 64 };

struct fault_log {
    char *lines; // mapped
    uint32_t used;
};

// Makes the file, or empties it. The mapping lives as long as the process.
int fault_log_open(struct fault_log *log, const char *path, struct error *err);

// Any thread may call it. After FAULT_LOG_LINES nothing is recorded: the caller must then stop.
void fault_log_add(struct fault_log *log, int64_t begin_ns, int64_t end_ns, const char *kind);

// Now, in the log's clock.
int64_t fault_log_now(void);

#endif
