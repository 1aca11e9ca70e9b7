// SPDX-License-Identifier: MIT
//
// What a host behind ssh needs of us, as one stream: this program, the shared libraries it has
// loaded (all but the C library's own), the shim and the laboratory server, and a list of their
// SHA-256 sums, which the other end checks; the program's own names the directory.
// The stream is a tar archive (POSIX.1-1988 ustar), padded to whole blocks of
// DEPLOYMENT_BLOCK_BYTES, so that the other end can take exactly it off its input.
#ifndef EXPERIMENTS_REMOTE_DEPLOYMENT_H
#define EXPERIMENTS_REMOTE_DEPLOYMENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

enum { DEPLOYMENT_BLOCK_BYTES = 65536, DEPLOYMENT_HASH_BYTES = 17 };

struct deployed_file {
    char name[128];
    char path[4096];
    int fd; // open from its sum to its copy: whoever builds anew meanwhile replaces the path only
    uint64_t bytes;
};

struct deployment {
    struct ARRAY_OF(struct deployed_file) files;
    struct ARRAY_OF(char) sums;       // as `sha256sum -c` reads them
    char hash[DEPLOYMENT_HASH_BYTES]; // the beginning of the program's sum
    uint64_t blocks;
};

// Opens the files and finds their sums; the program is the one that runs. deployment_free frees,
// also after an error.
int deployment_make(struct deployment *deployment, struct error *err);
void deployment_free(struct deployment *deployment);

// Writes the stream. A reader that is gone, or takes nothing for 10 s, is ERROR_FAILED.
int deployment_write(const struct deployment *deployment, int fd, struct error *err);

// What the other end's login shell is given; a constant, in which nothing of ours is filled in. It
// reads a line "<base> <hash> <blocks>\n", then the stream, makes the directory (mode 0700), checks
// the sums, and becomes `taillight agent --start` there; or says why not and removes it all.
extern const char deployment_bootstrap[];

#endif
