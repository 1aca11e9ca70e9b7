// SPDX-License-Identifier: MIT
//
// A file that has its name only when it is whole: it is written as "<path>.partial" and renamed at
// the end. Whoever finds the name may read the file, and after a failure nothing is left.
#ifndef BASE_NEW_FILE_H
#define BASE_NEW_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

struct new_file {
    FILE *file;           // NULL: not open
    char *path, *partial; // the name it gets, and the one it has until then
};

// Creates the partial file. On success new_file_finish must be called; on ERROR_FAILED nothing is
// left to release.
int new_file_open(struct new_file *out, const char *path, struct error *err);

// Closes the file. Result 0: everything is written, the file gets its name, unless that fails or a
// write failed before (ERROR_FAILED). Else the partial file is removed and the result returned.
// Harmless when it is not open.
int new_file_finish(struct new_file *out, int result, struct error *err);

// Writes a text that is whole in memory.
int new_file_write(const char *path, const char *text, size_t bytes, struct error *err);

#endif
