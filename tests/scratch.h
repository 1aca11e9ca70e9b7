// SPDX-License-Identifier: MIT
//
// A directory in memory for what a fuzz target writes. It is removed when the program exits, and
// when it is killed by the next one that wants one: whoever lives holds the lock on his own.
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_path[] = "/dev/shm/taillight-scratch-XXXXXX";

static int scratch_remove_one(const char *path, const struct stat *status, int kind,
                              struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    return remove(path);
}

static void scratch_remove(void)
{
    nftw(scratch_path, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void scratch_remove_abandoned(void)
{
    glob_t found;
    if (glob("/dev/shm/taillight-scratch-*", GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        int fd = open(found.gl_pathv[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            nftw(found.gl_pathv[i], scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
        if (fd >= 0)
            close(fd);
    }
    globfree(&found);
}

// The directory's path, made at the first call.
static inline const char *scratch_directory(void)
{
    static int held = -1;
    struct stat status;
    if (held >= 0)
        return scratch_path;
    scratch_remove_abandoned();
    if (!mkdtemp(scratch_path) || atexit(scratch_remove) != 0 ||
        (held = open(scratch_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
        flock(held, LOCK_EX | LOCK_NB) < 0 || stat(scratch_path, &status) < 0)
        abort(); // or, just now, another has taken it for abandoned
    return scratch_path;
}

#endif
