// SPDX-License-Identifier: MIT
#include "analysis/run/run_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char server[] = "server/";

void run_path(char out[RUN_FILE_PATH_BYTES], const char *run_dir, const char *name)
{
    size_t bytes = strlen(server);
    if (strncmp(name, server, bytes) == 0) {
        snprintf(out, RUN_FILE_PATH_BYTES, "%s/server", run_dir);
        if (access(out, F_OK) != 0) {
            snprintf(out, RUN_FILE_PATH_BYTES, "%s/capture.json", run_dir);
            if (access(out, F_OK) == 0)
                name += bytes;
        }
    }
    snprintf(out, RUN_FILE_PATH_BYTES, "%s/%s", run_dir, name);
}

char *run_load_folder(const char *name, char out[LOAD_FOLDER_BYTES])
{
    snprintf(out, LOAD_FOLDER_BYTES, "client%s%.32s", name ? "-" : "", name ? name : "");
    return out;
}
