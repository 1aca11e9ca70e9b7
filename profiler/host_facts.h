// SPDX-License-Identifier: MIT
//
// Facts about this host from the kernel's small text files, and the paths of its programs.
#ifndef PROFILER_HOST_FACTS_H
#define PROFILER_HOST_FACTS_H

#include <stdbool.h>
#include <stddef.h>

// Reads a file's first line without its newline. False, and "" in out, when there is none.
bool host_read_line(const char *path, char *out, size_t out_bytes);

// Copies the value of a "key : value" line, as in /proc/cpuinfo.
bool host_read_field(const char *path, const char *key, char *out, size_t out_bytes);

// True when a word is in a list of words with spaces between.
bool host_has_word(const char *list, const char *word);

// True, with its path in out, when the program is in PATH.
bool host_find_program(const char *name, char *out, size_t out_bytes);

#endif
