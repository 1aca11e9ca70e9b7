// SPDX-License-Identifier: MIT
//
// Where a run folder has its files. What `taillight capture` wrote by itself is one, too, of which
// all belongs to the server: there is no folder server/ in it then.
#ifndef ANALYSIS_RUN_PATH_H
#define ANALYSIS_RUN_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/log_file.h"

enum {
    RUN_FILE_PATH_BYTES = 4300,
    LOAD_FOLDER_BYTES = 48,
    RUN_LOAD_FILE_BYTES = LOAD_FOLDER_BYTES + 32
};

// The path of a file by its name in a run folder, as in "server/events.tlog", or of "server"
// itself.
void run_path(char out[RUN_FILE_PATH_BYTES], const char *run_dir, const char *name);

// Whether the file is there.
bool run_has(const char *run_dir, const char *name);

// Opens a log by its name in a run folder, as log_reader_open does.
int run_log_open(struct log_reader *reader, const char *run_dir, const char *name,
                 enum log_kind kind, uint32_t version, size_t record_bytes, struct error *err);

// The folder of a load's logs in it: "client", and of one beside the first, by its name,
// "client-NAME" (NULL: the first). Returns out.
char *run_load_folder(const char *name, char out[LOAD_FOLDER_BYTES]);

// A file of that folder: "client/samples.tlog". Returns out.
char *run_load_file(const char folder[LOAD_FOLDER_BYTES], const char *file,
                    char out[RUN_LOAD_FILE_BYTES]);

#endif
