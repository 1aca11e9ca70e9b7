// SPDX-License-Identifier: MIT
//
// The code that a trace ran through, put beside its recording: a trace says which branches were
// taken, so without the very files that ran it is worth nothing on another machine. Executables and
// libraries of the processes that ran go to <folder>/symfs under their own paths, with this
// kernel's vdso, where the analysis looks first (a second file of one path, as containers have, as
// analysis/code/code_files.h says); maps of code that was made at run time
// (perf-<pid>.map) go into the folder itself, and so does that code (run_time_code.h). The kernel's
// code is in perf's copy of kcore.
#ifndef EXPERIMENTS_CAPTURE_TRACE_CODE_H
#define EXPERIMENTS_CAPTURE_TRACE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct trace_code {
    uint64_t files, bytes; // that are there now
    uint64_t maps;         // of code made at run time: its names
    uint64_t made;         // processes whose code made at run time is there
    // Files that are not: gone or unreadable; replaced since they were mapped; without room.
    uint64_t missing, changed, unfit;
    char example[300]; // the first of those
};

// Collects the code of a recording that was made on this machine: what ends with its process, and
// where it is to be read elsewhere (`with_files`) what this machine has in files. reserve_bytes: so
// much of the disk stays free. A recording that cannot be read is an error; a file that cannot be
// had is counted.
int trace_code_collect(const char *recording, const char *folder, bool with_files,
                       uint64_t reserve_bytes, struct trace_code *out, struct error *err);

#endif
