// SPDX-License-Identifier: MIT
//
// The folder a run lives in (docs/formats.md).
#ifndef EXPERIMENTS_COMMON_RUN_FOLDER_H
#define EXPERIMENTS_COMMON_RUN_FOLDER_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rights.h"

enum { RUN_PATH_BYTES = 4096 };

struct run_folder {
    char path[RUN_PATH_BYTES];
};

// Makes the folder, with nothing in it. wanted NULL: runs/<name>-<UTC time>. One of a run that
// failed before its load began is emptied (failed_run.h); another that has something in it already
// is ERROR_INPUT. What is made of its path belongs to `owner` (NULL: to whom the process is).
int run_folder_make(struct run_folder *folder, const char *wanted, const char *name,
                    const struct person *owner, struct error *err);

// Writes "<folder>/<name>" into path and returns it.
char *run_folder_path(const struct run_folder *folder, const char *name,
                      char path[RUN_PATH_BYTES + 128]);

// Names a folder in it; one whose path is too long is ERROR_INPUT.
int run_folder_inside(const struct run_folder *folder, const char *name, struct run_folder *inside,
                      struct error *err);

// Reads such a file that the program has written. The caller owns it; NULL, with *err filled in,
// when it is not there or not whole.
json_t *run_folder_read_json(const struct run_folder *folder, const char *name, struct error *err);

// Writes a file under "<name>.partial" and gives it its name when it is whole.
int run_folder_write(const struct run_folder *folder, const char *name, const char *text,
                     size_t bytes, struct error *err);
int run_folder_write_json(const struct run_folder *folder, const char *name, const json_t *document,
                          struct error *err);

// What may still be written on the disk of that folder, without root's share; UINT64_MAX: not
// known.
uint64_t free_disk_bytes(const char *folder);

#endif
