// SPDX-License-Identifier: MIT
//
// Every file that is written. It has its name only when it is whole: until then it is called
// "<path>.<random>.partial", a name that nobody can have put there before. Whoever finds the name
// may read the file, and after a failure nothing is left, nor when a signal ends the program; what
// SIGKILL leaves is removed by who writes that file again, or sweeps the folder, unless somebody
// makes something of it. What stood under the name is replaced, not written through: a link keeps
// what it points to. Only a device or a pipe, which somebody reads from, is written itself.
#ifndef BASE_NEW_FILE_H
#define BASE_NEW_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

struct new_file {
    FILE *file;           // NULL: not open
    char *path, *partial; // the name it gets, and the one it has until then; NULL: it is no file
};

// Creates the partial file. On success new_file_finish must be called; after an error nothing is
// left to release. ERROR_INPUT: a folder has the name, or a pipe that nobody reads.
int new_file_open(struct new_file *out, const char *path, struct error *err);

// Closes the file. Result 0: everything is written, the file gets its name, unless that fails or a
// write failed before (ERROR_FAILED; where a folder has the name, ERROR_INPUT). Else the partial
// file is removed and the result returned. Harmless when it is not open.
int new_file_finish(struct new_file *out, int result, struct error *err);

// Whether it could be written now, for who is to work long for it; nothing is there afterwards. Of
// a device or a pipe, which would be at its end then, that is not asked.
int new_file_try(const char *path, struct error *err);

// Removes the partial files of that folder that nobody writes any more.
void new_file_sweep(const char *folder);

// Opens what a killed writer left of that file, for reading and writing, where nobody has written
// it since, and copies its name to partial. Returns the descriptor, which the caller closes; -1:
// there is none.
int new_file_open_abandoned(const char *path, char *partial, size_t partial_bytes);

// Removes the partial files of this process, which is about to end without finishing them, and what
// it has noted. May be called in a signal handler.
void new_file_abandon_all(void);

// Another file, or a folder with its files, that is there for the time being, and goes with these.
// The path stays where it is until it is forgotten. Without memory it is not removed.
void new_file_note(const char *path);
void new_file_forget(const char *path);

// Creates a file for output that others may read while it grows, as a log; it must not be there.
// Returns the descriptor, or negative.
int new_file_create(const char *path, struct error *err);

// Opens a log to be continued, or creates it. A pipe without a reader is an error, as is a link.
// Sets errno.
int new_file_continue(const char *path);

// Writes a text that is whole in memory.
int new_file_write(const char *path, const char *text, size_t bytes, struct error *err);

#endif
