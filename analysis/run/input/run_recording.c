// SPDX-License-Identifier: MIT
#include "analysis/run/input/run_recording.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool run_recording_find(struct run_recording *recording, const char *run_dir, const json_t *capture,
                        const char *backend, char problem[RUN_RECORDING_PROBLEM])
{
    const char *name =
        json_string_value(json_object_get(json_object_get(capture, backend), "perf_data"));
    if (!name)
        return false;
    if (strchr(name, '/') || name[0] == '.' || strlen(name) > 100) {
        snprintf(problem, RUN_RECORDING_PROBLEM,
                 "server/capture.json: %s.perf_data is not a file's name", backend);
        return false;
    }
    char in_server[128];
    snprintf(in_server, sizeof in_server, "server/%s", name);
    run_path(recording->path, run_dir, in_server);
    run_path(recording->symfs, run_dir, "server/symfs");
    if (access(recording->symfs, F_OK) < 0)
        recording->symfs[0] = '\0';
    if (access(recording->path, R_OK) == 0)
        return true;
    snprintf(problem, RUN_RECORDING_PROBLEM,
             "server/%s is not there or cannot be read, so functions are unknown", name);
    return false;
}
