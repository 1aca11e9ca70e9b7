// SPDX-License-Identifier: MIT
//
// Undoing something on any end of this program, SIGKILL included: a child that waits for the end of
// a pipe, which the kernel closes with its parent, and then undoes. An ordinary end goes the same
// way. Of one machine's life only: what a power cut leaves is gone with the machine's memory.
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <sys/types.h>

#include "base/error.h"

struct guard {
    pid_t pid; // 0: none
    int pipe;
};

// Begins to guard, before what is to be undone is done. The child calls undo(context) with a copy
// of the memory as it is now. It must be content with system calls, since other threads may hold
// any lock; of open files it has only keep_fd (-1: none). A session of its own keeps signals of
// terminals and groups away from it.
int guard_begin(struct guard *guard, void (*undo)(const void *context), const void *context,
                int keep_fd, struct error *err);

// Has it undo, and waits for that. Harmless on a zeroed struct.
void guard_end(struct guard *guard);

#endif
