// SPDX-License-Identifier: MIT
//
// A sleep until a disk has done something: in the disk's queue, or at its work.
#ifndef ANALYSIS_DECOMPOSITION_PATH_DISK_H
#define ANALYSIS_DECOMPOSITION_PATH_DISK_H

#include <stdbool.h>

#include "analysis/decomposition/path_core.h"

// The sleep of a thread in what is called `sleep` ("": nobody knows), if a disk's completion ended
// it. False: none did.
bool path_add_disk_wait(struct path *path, const struct thread_period *period, const char *sleep);

#endif
