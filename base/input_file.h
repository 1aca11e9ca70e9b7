// SPDX-License-Identifier: MIT
//
// Every file that is read: somebody else may have put it there, or change it meanwhile. Opening
// never waits, whatever lies under the name (a FIFO, a device), and a mapped file that is cut short
// while it is read ends the program with an error that names it.
#ifndef BASE_INPUT_FILE_H
#define BASE_INPUT_FILE_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

// What is to be done about a file of ours that is not as it was written.
#define INPUT_COPY_AGAIN "copy it again from where it was recorded"

// Opens a regular file; anything else is ERROR_INPUT. Returns the descriptor (the caller closes
// it), or negative. err may be NULL.
int input_open(const char *path, struct error *err);

// The same for a file that a person named, who may mean a pipe or standard input: these are read to
// their end. A FIFO that nobody writes to is at its end.
int input_open_any(const char *path, struct error *err);

// The same as streams; NULL on errors.
FILE *input_stream(const char *path, struct error *err);
FILE *input_stream_any(const char *path, struct error *err);

// Reads a JSON file. NULL: it cannot be opened, or *problem (may be NULL) says what is wrong.
json_t *input_json(const char *path, json_error_t *problem);

// Maps an open regular file, read-only, whole. *bytes: its content, until input_unmap; NULL when
// the file is empty. The descriptor stays the caller's; `path` is for messages.
int input_map(int fd, const char *path, const void **bytes, size_t *count, struct error *err);

// How many bytes in front of a text are the mark that spreadsheets put before UTF-8 (U+FEFF): 3 or
// 0. It is no part of the first column.
size_t input_mark_bytes(const char *text, size_t bytes);

// Harmless on NULL.
void input_unmap(const void *bytes);

#endif
