// SPDX-License-Identifier: MIT
//
// Where a run folder has its files. What `taillight capture` wrote by itself is one, too, of which
// all belongs to the server: there is no folder server/ in it then.
#ifndef ANALYSIS_RUN_PATH_H
#define ANALYSIS_RUN_PATH_H

#include <stddef.h>

enum { RUN_FILE_PATH_BYTES = 4300 };

// The path of a file by its name in a run folder, as in "server/events.tlog".
void run_path(char out[RUN_FILE_PATH_BYTES], const char *run_dir, const char *name);

enum { LOAD_FOLDER_BYTES = 48 };

// The folder of a load's logs in it: "client", and of one beside the first, by its name,
// "client-NAME" (NULL: the first). Returns out.
char *run_load_folder(const char *name, char out[LOAD_FOLDER_BYTES]);

#endif
