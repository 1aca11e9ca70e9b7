// SPDX-License-Identifier: MIT
//
// Code that a process made at run time, as compilers in runtimes do: no file has it, so it is
// copied from the memory of the process, while it lives, to an ELF core file which the analysis
// finds beside the recording (analysis/code/code_build.h). It is the code as it is at the end of a
// recording; what was replaced before is not there any more.
#ifndef EXPERIMENTS_CAPTURE_RUN_TIME_CODE_H
#define EXPERIMENTS_CAPTURE_RUN_TIME_CODE_H

#include <stdint.h>

#include "base/error.h"

// Writes the process's executable memory that no file backs, without the pages that are only
// zeros, to `path`; *bytes: how much, 0: there is none, and no file. ERROR_INPUT: the process has
// ended, or its memory may not be read. ERROR_FAILED: it has more than most_bytes, or it cannot be
// written.
int run_time_code_copy(uint32_t pid, const char *path, uint64_t most_bytes, uint64_t *bytes,
                       struct error *err);

#endif
