// SPDX-License-Identifier: MIT
//
// Where in a run folder perf's recording is, of whichever backend made one.
#ifndef ANALYSIS_RUN_RECORDING_H
#define ANALYSIS_RUN_RECORDING_H

#include <jansson.h>
#include <stdbool.h>

enum { RUN_RECORDING_PATH = 4300, RUN_RECORDING_PROBLEM = 400 };

struct run_recording {
    char path[RUN_RECORDING_PATH];
    char symfs[RUN_RECORDING_PATH]; // the recorded machine's files, where another one analyses; ""
};

// Finds the recording that capture.json (or NULL) names under the backend's name. False: there is
// none; when there should be one, why not is in problem, which is else left as it is.
bool run_recording_find(struct run_recording *recording, const char *run_dir, const json_t *capture,
                        const char *backend, char problem[RUN_RECORDING_PROBLEM]);

#endif
