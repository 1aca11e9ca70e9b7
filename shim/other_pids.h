// SPDX-License-Identifier: MIT
//
// Processes of other PID namespaces, as in containers: the shim knows them and their threads by the
// numbers that they have inside, everybody else by those they have outside. As far as /proc shows
// them, which it does to whoever is in a namespace above theirs.
#ifndef SHIM_OTHER_PIDS_H
#define SHIM_OTHER_PIDS_H

#include <stdint.h>

#include "base/array.h"

enum {
    PID_NAMESPACE_FIRST = 0xeffffffc, // the machine's own (linux/proc_ns.h: PROC_PID_INIT_INO)
};

struct other_pid {
    uint64_t namespace; // inode
    uint32_t inside, here;
};
struct other_pid_array ARRAY_OF(struct other_pid);

// Reads anew which processes there are outside of the namespace `own` (an inode).
void other_pids_read(struct other_pid_array *pids, uint64_t own);

// The number here of a process; 0: not known.
uint32_t other_pids_find(const struct other_pid_array *pids, uint64_t namespace, uint32_t inside);

// The number here of a thread of that process; 0: not known.
uint32_t other_thread_find(uint32_t process_here, uint32_t inside);

#endif
