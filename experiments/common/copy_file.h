// SPDX-License-Identifier: MIT
//
// Copies a file into a new one.
#ifndef EXPERIMENTS_COMMON_COPY_FILE_H
#define EXPERIMENTS_COMMON_COPY_FILE_H

#include "base/error.h"

// ERROR_FAILED names the file that could not be read or written; `to` must not be there before.
int copy_file(const char *from, const char *to, struct error *err);

#endif
