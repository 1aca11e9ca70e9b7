// SPDX-License-Identifier: MIT
//
// A recorded schedule as text: one request a line, in the order of time. A line that names the
// columns stands in front (time, key, operation, key_size, value_size, in any order, others
// between them); without one a line is a time alone, or the seven columns of Twitter's cache
// traces: time, key, key size, value size, client, operation, TTL (Yang, Yue and Rashmi, "A large
// scale analysis of hundreds of in-memory cache clusters at Twitter", OSDI 2020). Sizes are in
// bytes, times in seconds; a trace whose times are whole seconds has each second's requests spread
// over it. Or what Redis' MONITOR prints (loadgen/recording/recording_monitor.h).
#ifndef LOADGEN_RECORDING_RECORDING_CSV_H
#define LOADGEN_RECORDING_RECORDING_CSV_H

#include <stddef.h>

#include "base/error.h"
#include "loadgen/recording/recording.h"

// Parses it, which may hold any bytes. Operations are those of the workload's protocol, also by the
// names that other tools give them (gets, add, read); requests with others are counted and left
// out. path: for errors, which are ERROR_INPUT with the line. The caller frees with recording_free,
// also after an error.
int recording_parse(const char *text, size_t bytes, const char *path,
                    const struct workload *workload, struct recording *recording,
                    struct error *err);

#endif
