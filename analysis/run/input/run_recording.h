// SPDX-License-Identifier: MIT
//
// perf's recording in a run folder, of whichever backend made one.
#ifndef ANALYSIS_RUN_RECORDING_H
#define ANALYSIS_RUN_RECORDING_H

#include <jansson.h>
#include <stdbool.h>

#include "analysis/run/input/run_path.h"

enum { RUN_RECORDING_PATH = RUN_FILE_PATH_BYTES, RUN_RECORDING_PROBLEM = 400 };

struct run_recording {
    char path[RUN_RECORDING_PATH];
    char
        symfs[RUN_RECORDING_PATH]; // copies of the recorded machine's files; "": it is this machine
};

// Finds the recording that capture.json names for this backend. False: there is none; if capture
// (may be NULL) says there should be, problem says why, else it is unchanged.
bool run_recording_find(struct run_recording *recording, const char *run_dir, const json_t *capture,
                        const char *backend, char problem[RUN_RECORDING_PROBLEM]);

#endif
