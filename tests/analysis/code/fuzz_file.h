// SPDX-License-Identifier: MIT
//
// Bytes as a file in memory, for readers that take a path.
#ifndef ANALYSIS_FUZZ_FILE_H
#define ANALYSIS_FUZZ_FILE_H

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct fuzz_file {
    int descriptor;
    char path[40];
};

// -1: not to be had.
static inline int fuzz_file_make(struct fuzz_file *file, const void *bytes, size_t count)
{
    file->descriptor = memfd_create("fuzz", MFD_CLOEXEC);
    if (file->descriptor < 0)
        return -1;
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->descriptor);
    if (count == 0 || write(file->descriptor, bytes, count) == (ssize_t)count)
        return 0;
    close(file->descriptor);
    return -1;
}

static inline void fuzz_file_remove(struct fuzz_file *file)
{
    close(file->descriptor);
}

#endif
