// SPDX-License-Identifier: MIT
//
// The real captures, unpacked into a folder of the test's own. They lie beside the project
// (../shared/data/pt, or $TAILLIGHT_DATA/pt); where they do not, the test is skipped. Header-only.
#ifndef TESTS_ANALYSIS_PERF_CAPTURE_FOLDER_H
#define TESTS_ANALYSIS_PERF_CAPTURE_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct capture_folder {
    char path[64];
};

static inline bool run_quietly(const char *command)
{
    return system(command) == 0;
}

// False, with the reason printed as the last line, when the archive is not there.
static inline bool unpack_capture(struct capture_folder *folder, const char *archive)
{
    const char *data = getenv("TAILLIGHT_DATA");
    char command[4400], path[4200];
    snprintf(path, sizeof path, "%s/pt/%s", data ? data : "../shared/data", archive);
    if (access(path, R_OK) < 0) {
        printf("the capture %s is not here (TAILLIGHT_DATA names its folder)\n", path);
        return false;
    }
    snprintf(folder->path, sizeof folder->path, "/tmp/taillight-capture-XXXXXX");
    if (!mkdtemp(folder->path))
        return false;
    snprintf(command, sizeof command, "tar --no-same-owner -C '%s' -xJf '%s'", folder->path, path);
    if (run_quietly(command))
        return true;
    printf("%s cannot be unpacked (tar and xz are needed)\n", path);
    return false;
}

static inline void remove_capture(struct capture_folder *folder)
{
    char command[128];
    if (!folder->path[0])
        return;
    snprintf(command, sizeof command, "rm -rf '%s'", folder->path);
    run_quietly(command);
}

#endif
