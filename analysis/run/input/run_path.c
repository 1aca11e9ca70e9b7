// SPDX-License-Identifier: MIT
#include "analysis/run/input/run_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char server[] = "server";

void run_path(char out[RUN_FILE_PATH_BYTES], const char *run_dir, const char *name)
{
    size_t bytes = strlen(server);
    if (strncmp(name, server, bytes) == 0 && (name[bytes] == '/' || name[bytes] == '\0')) {
        snprintf(out, RUN_FILE_PATH_BYTES, "%s/server", run_dir);
        if (access(out, F_OK) != 0) {
            snprintf(out, RUN_FILE_PATH_BYTES, "%s/capture.json", run_dir);
            if (access(out, F_OK) == 0)
                name = name[bytes] ? name + bytes + 1 : ".";
        }
    }
    snprintf(out, RUN_FILE_PATH_BYTES, "%s/%s", run_dir, name);
}

bool run_has(const char *run_dir, const char *name)
{
    char path[RUN_FILE_PATH_BYTES];
    run_path(path, run_dir, name);
    return access(path, F_OK) == 0;
}

int run_log_open(struct log_reader *reader, const char *run_dir, const char *name,
                 enum log_kind kind, uint32_t version, size_t record_bytes, struct error *err)
{
    char path[RUN_FILE_PATH_BYTES];
    run_path(path, run_dir, name);
    return log_reader_open(reader, path, kind, version, record_bytes, err);
}

char *run_load_folder(const char *name, char out[LOAD_FOLDER_BYTES])
{
    snprintf(out, LOAD_FOLDER_BYTES, "client%s%.32s", name ? "-" : "", name ? name : "");
    return out;
}

char *run_load_file(const char folder[LOAD_FOLDER_BYTES], const char *file,
                    char out[RUN_LOAD_FILE_BYTES])
{
    snprintf(out, RUN_LOAD_FILE_BYTES, "%s/%s", folder, file);
    return out;
}
