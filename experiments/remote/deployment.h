// SPDX-License-Identifier: MIT
//
// What a host behind ssh needs from us, as one stream: this program, the shared libraries it has
// loaded (all but the C library's own), the shim and the laboratory server, and a list of their
// SHA-256 sums, which the other end checks. The directory there is named after the program's sum.
// The stream is a tar archive (POSIX.1-1988 ustar), padded to whole blocks of
// DEPLOYMENT_BLOCK_BYTES, so that the other end can read exactly the archive from its input.
#ifndef EXPERIMENTS_REMOTE_DEPLOYMENT_H
#define EXPERIMENTS_REMOTE_DEPLOYMENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

// The file by which the other end says that a keeper removes its directory.
#define DEPLOYMENT_ADOPTED "adopted"

enum { DEPLOYMENT_BLOCK_BYTES = 65536, DEPLOYMENT_HASH_BYTES = 17 };

struct deployed_file {
    char name[128];
    char path[4096];
    int fd; // stays open until it is copied: a build meanwhile replaces only the path
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

// Writes the stream. ERROR_FAILED when the reader is gone or takes nothing for 10 s.
int deployment_write(const struct deployment *deployment, int fd, struct error *err);

// The command for the login shell at the other end. It is a constant: no text of ours is filled in.
// It reads a line "<base> <hash> <blocks>\n", then the stream, makes the directory (mode 0700),
// checks the sums, and becomes `taillight agent --start` there; or says why not and removes it all.
extern const char deployment_bootstrap[];

#endif
