// SPDX-License-Identifier: MIT
//
// The directory of the shim's shared memory: made, held, cleared and removed. Whoever uses one
// holds a lock on it (flock) as long as its descriptor is open, so that of a collector that was
// killed, by whatever, the directory is known to be nobody's, and whoever comes next removes it.
#ifndef SHIM_RING_DIRECTORY_H
#define SHIM_RING_DIRECTORY_H

#include "base/error.h"

// Opens a directory on a tmpfs that only this user can write to, and holds it; made (mode 0711) if
// it is not there and its parent is, or is one of a run's. *fd is the caller's to close, -1 on
// failure.
int ring_directory_open(const char *dir, int *fd, struct error *err);

// Removes the shim's files. Returns how many others there are, or -1.
int ring_directory_clear(int fd);

// Removes the directory, if it is empty, and a run's around it.
void ring_directory_remove(const char *dir);

// Removes what collectors of this user that were killed have left in /dev/shm, itself or in one of
// a run's there, and beside `dir` (NULL: nowhere else), and returns how many. Servers that have it
// mapped are told to detach, go on as without the shim, and hold no memory of it any more.
unsigned ring_directories_remove_abandoned(const char *dir);

#endif
