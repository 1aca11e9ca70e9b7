// SPDX-License-Identifier: MIT
//
// Where programs are: this one, what was built beside it, and those on PATH.
#ifndef EXPERIMENTS_COMMON_PROGRAM_PATH_H
#define EXPERIMENTS_COMMON_PROGRAM_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

// The path of this very program.
int program_path_self(char *path, size_t path_bytes, struct error *err);

// The path of what is built with this program: beside it, or where `make install` puts it
// (../lib/taillight). ERROR_FAILED names both places when it is in neither.
int program_path_beside(const char *name, char *path, size_t path_bytes, struct error *err);

// The same for libtaillight-shim.so.
int program_path_shim(char *path, size_t path_bytes, struct error *err);

// Whether a command of that name can be started; else ERROR_FAILED says which package has it.
int program_needed(const char *name, struct error *err);

// Whether a command of that name (or path) can be started.
bool program_exists(const char *name);

#endif
