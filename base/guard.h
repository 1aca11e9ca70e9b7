// SPDX-License-Identifier: MIT
//
// Undoes a change however this program ends, SIGKILL included: a child waits for the end of a pipe,
// which the kernel closes when its parent dies, and then undoes the change. An ordinary end goes
// the same way. It works only while the machine is up; after a power cut nothing is undone, but
// settings in the machine's memory are gone anyway.
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <sys/types.h>

#include "base/error.h"

struct guard {
    pid_t pid; // 0: none
    int pipe;
};

// Starts the guard; call it before making the change that is to be undone. The child calls
// undo(context) with a copy of the memory as it is now. undo may only use system calls, since other
// threads may hold any lock; the only open file it has is keep_fd (-1: none). The child has a
// session of its own, so signals of terminals and process groups do not reach it.
int guard_begin(struct guard *guard, void (*undo)(const void *context), const void *context,
                int keep_fd, struct error *err);

// Makes the guard undo the change, and waits for that. Harmless on a zeroed struct.
void guard_end(struct guard *guard);

#endif
