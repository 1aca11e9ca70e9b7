// SPDX-License-Identifier: MIT
//
// A recorded schedule from a file: a samples.tlog, text (recording_csv.h), or packets
// (recording_pcap.h).
#ifndef LOADGEN_RECORDING_RECORDING_FILE_H
#define LOADGEN_RECORDING_RECORDING_FILE_H

#include "base/error.h"
#include "loadgen/recording/recording.h"

// ERROR_INPUT with the file and the line or record: not such a file, empty, not ascending, longer
// than a day, or an operation or key that the workload does not have. The caller frees.
int recording_load(const char *path, const struct workload *workload, struct recording *recording,
                   struct error *err);

#endif
